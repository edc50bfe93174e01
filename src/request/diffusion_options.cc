// The options of pipelines of image and video diffusion. Names are those of diffusers without their
// prefixes, degrees those of xDiT.

#include "request/access.h"
#include "request/option_tables.h"

namespace tilecast {
namespace {

constexpr double kMostSteps = 10000, kMostPixels = 1 << 14, kMostFrames = 1 << 14;

std::vector<OptionDef> output_options() {
  return {
      {.name = "steps",
       .access = field<[](auto& r) -> auto& { return r.diffusion.steps; }>(),
       .value = "N",
       .help = "steps of the denoiser of a diffusion pipeline; default, as of the next five: the "
               "pipeline's",
       .max = kMostSteps,
       .old_names = {"num-inference-steps"}},
      {.name = "guidance",
       .access = field<[](auto& r) -> auto& { return r.diffusion.guidance; }>(),
       .value = "SCALE",
       .help = "scale of classifier-free guidance, which runs the denoiser for each prompt twice; "
               "1 or less: none. An input of denoisers that are distilled for it",
       .min = 0,
       .max = 1000,
       .old_names = {"guidance-scale"}},
      {.name = "height",
       .access = field<[](auto& r) -> auto& { return r.diffusion.height; }>(),
       .value = "N",
       .unit = "pixels",
       .help = "of the images or videos of a diffusion pipeline",
       .max = kMostPixels},
      {.name = "width",
       .access = field<[](auto& r) -> auto& { return r.diffusion.width; }>(),
       .value = "N",
       .unit = "pixels",
       .help = "of the images or videos of a diffusion pipeline",
       .max = kMostPixels},
      {.name = "frames",
       .access = field<[](auto& r) -> auto& { return r.diffusion.frames; }>(),
       .value = "N",
       .help = "of each video of a diffusion pipeline",
       .max = kMostFrames,
       .old_names = {"num-frames"}},
      {.name = "fps",
       .access = field<[](auto& r) -> auto& { return r.diffusion.fps; }>(),
       .value = "N",
       .help = "frames of a video that are played in a second",
       .min = 1e-3,
       .max = 1e4},
  };
}

std::vector<OptionDef> degree_options_of_diffusion() {
  return {
      {.name = "ulysses-degree",
       .access = field<[](auto& r) -> auto& { return r.diffusion.ulysses_degree; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help =
           "ranks that share the sequences of a diffusion pipeline, and in attention its heads"},
      {.name = "ring-degree",
       .access = field<[](auto& r) -> auto& { return r.diffusion.ring_degree; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "ranks that share these sequences and pass keys and values around"},
      {.name = "cfg-degree",
       .access = field<[](auto& r) -> auto& { return r.diffusion.cfg_degree; }>(),
       .value = "N",
       .unit = "ranks",
       .default_value = "1",
       .help = "2: guidance's two passes run on ranks of their own",
       .max = 2},
  };
}

}  // namespace

std::vector<OptionDef> diffusion_options() {
  std::vector<OptionDef> options = output_options();
  for (OptionDef& option : degree_options_of_diffusion()) options.push_back(std::move(option));
  for (OptionDef& option : options) option.kinds = kPasses;
  return options;
}

}  // namespace tilecast
