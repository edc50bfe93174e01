#include "scenario/diffusion/diffusion_batch.h"

#include <fmt/format.h>

#include <utility>

#include "scenario/diffusion/diffusion.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_batch(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

void require_multiple(const char* option, int64_t value, int64_t of, const std::string& model) {
  if (value % of == 0) return;
  const int64_t below = value / of * of;
  refuse_batch(fmt::format(
      "{}: `{}` {} is not divisible by {}, the pixels of a latent times the patch; use {}{}", model,
      option, value, of, below > 0 ? fmt::format("{} or ", below) : "", below + of));
}

void check_frames(const Model& model, const DiffusionTerms& terms) {
  const DiffusionPipeline& p = *model.pipeline;
  if (!p.video) {
    if (terms.frames || terms.fps)
      refuse_batch(fmt::format("{}: `{}` applies to pipelines of videos; this one makes images",
                               model.name, terms.frames ? "frames" : "fps"));
    return;
  }
  const int64_t frames = terms.frames.value_or(p.frames);
  if ((frames - 1) % p.frame_multiple == 0) return;
  const int64_t below = (frames - 1) / p.frame_multiple * p.frame_multiple + 1;
  refuse_batch(fmt::format("{}: `frames` {}: expected one more than a multiple of {}; use {} or {}",
                           model.name, frames, p.frame_multiple, below, below + p.frame_multiple));
}

void check_degrees(const Model& model, const DiffusionTerms& terms, bool guided) {
  const DiffusionPipeline& p = *model.pipeline;
  if (p.heads % terms.ulysses_degree != 0)
    refuse_batch(fmt::format(
        "{}: `ulysses-degree` {} does not divide the {} heads of the denoiser's attention; use "
        "`ring-degree`, or a divisor",
        model.name, terms.ulysses_degree, p.heads));
  if (terms.cfg_degree > 1 && !guided)
    refuse_batch(fmt::format("{}: `cfg-degree` needs guidance of two passes; {}", model.name,
                             p.distilled ? "the denoiser of this pipeline is distilled for guidance"
                                         : "give `guidance` above 1"));
}

}  // namespace

void check_diffusion(const Request& request) {
  if (request.mode == Mode::kTraining)
    throw Error(ErrorKind::kUnsupported,
                "`mode` training: of a diffusion pipeline only inference is forecast; name the "
                "config of the denoiser alone");
  const Execution& e = request.execution;
  const Parallel& p = request.parallel;
  const std::pair<const char*, bool> refused[] = {{"tp", e.tp != 1},
                                                  {"pp", e.pp != 1},
                                                  {"dp", e.dp != 1},
                                                  {"cp", p.cp != 1},
                                                  {"ep", p.ep != 1}};
  for (const auto& [name, given] : refused) {
    if (given)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`{}`: ranks share a diffusion pipeline by `ulysses-degree`, "
                              "`ring-degree` and `cfg-degree`",
                              name));
  }
  check_request(request);
}

DiffusionPipeline::Batch complete_batch(const Model& model, Request& request) {
  const DiffusionPipeline& p = *model.pipeline;
  DiffusionTerms& terms = request.diffusion;
  check_frames(model, terms);
  if (!terms.steps) terms.steps = p.steps;
  if (!terms.guidance) terms.guidance = p.guidance;
  if (!terms.height) terms.height = p.height;
  if (!terms.width) terms.width = p.width;
  if (p.video && !terms.frames) terms.frames = p.frames;
  if (p.video && !terms.fps) terms.fps = p.fps;
  require_multiple("height", *terms.height, p.pixel_multiple, model.name);
  require_multiple("width", *terms.width, p.pixel_multiple, model.name);
  const bool guided = !p.distilled && *terms.guidance > 1;
  check_degrees(model, terms, guided);
  return {.outputs = request.batch,
          .height = *terms.height,
          .width = *terms.width,
          .frames = terms.frames.value_or(1),
          .guided = guided,
          .ulysses = terms.ulysses_degree,
          .ring = terms.ring_degree,
          .cfg = terms.cfg_degree};
}

std::optional<Warning> choose_dtype(const Device& device, Request& request) {
  std::string& dtype = request.execution.dtype;
  for (const DType candidate : {DType::kBf16, DType::kFp16, DType::kFp32}) {
    dtype = std::string(dtype_name(candidate));
    if (device.matmul_peak(candidate) > 0) break;
  }
  const std::string published(dtype_name(DType::kBf16));
  if (dtype == published) return std::nullopt;
  return Warning{
      WarningCode::kDtypeReplaced, device.id, 0, {{"requested", published}, {"used", dtype}}};
}

std::string describe_batch(const DiffusionPipeline::Batch& batch, const DiffusionPipeline& pipeline,
                           const DiffusionTerms& terms) {
  return fmt::format("{} x {} pixels{}, {} steps", batch.height, batch.width,
                     pipeline.video ? fmt::format(", {} frames", batch.frames) : "", *terms.steps);
}

}  // namespace tilecast
