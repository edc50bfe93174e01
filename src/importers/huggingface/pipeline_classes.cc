#include "importers/huggingface/pipeline_classes.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {

/// Source: diffusers 0.42, pipelines/*/pipeline_*.py: defaults of __call__ and its
/// max_sequence_length; frames a second of videos as in their examples (export_to_video).
const std::vector<PipelineDef>& pipeline_classes() {  // NOLINT(readability-function-size): a table
  using Denoises = DenoiserConfig;
  static const std::vector<PipelineDef> table = {
      {.class_name = "FluxPipeline",
       .doc = "FLUX.1 (diffusers)",
       .encoders = {{"text_encoder", 77, &Denoises::pooled_dim},
                    {"text_encoder_2", 512, &Denoises::text_dim}},
       .text_tokens = {512},
       .steps = 28,
       .height = 1024,
       .width = 1024,
       .guidance = 3.5,
       .distilled = true},
      {.class_name = "StableDiffusion3Pipeline",
       .doc = "Stable Diffusion 3 and 3.5 (diffusers)",
       .encoders = {{"text_encoder", 77, &Denoises::pooled_dim},
                    {"text_encoder_2", 77, &Denoises::pooled_dim},
                    {"text_encoder_3", 256, &Denoises::text_dim}},
       .text_tokens = {77 + 256},
       .steps = 28,
       .height = 1024,
       .width = 1024,
       .guidance = 7},
      {.class_name = "PixArtSigmaPipeline",
       .doc = "PixArt-Sigma (diffusers)",
       .encoders = {{"text_encoder", 300, &Denoises::text_dim}},
       .text_tokens = {300},
       .steps = 20,
       .height = 1024,
       .width = 1024,
       .guidance = 4.5},
      {.class_name = "HunyuanDiTPipeline",
       .doc = "HunyuanDiT (diffusers)",
       .encoders = {{"text_encoder", 77, &Denoises::text_dim},
                    {"text_encoder_2", 256, &Denoises::second_text_dim}},
       .text_tokens = {77, 256},
       .steps = 50,
       .height = 1024,
       .width = 1024,
       .guidance = 5},
      // The denoiser reads the last 300 tokens. The instruction in front of prompts is left out:
      // its number of tokens is known to the tokenizer only.
      {.class_name = "SanaPipeline",
       .doc = "Sana (diffusers)",
       .encoders = {{"text_encoder", 300, &Denoises::text_dim}},
       .text_tokens = {300},
       .steps = 20,
       .height = 1024,
       .width = 1024,
       .guidance = 4.5},
      {.class_name = "WanPipeline",
       .doc = "Wan, videos from text (diffusers)",
       .encoders = {{"text_encoder", 512, &Denoises::text_dim}},
       .text_tokens = {512},
       .steps = 50,
       .height = 480,
       .width = 832,
       .frames = 81,
       .guidance = 5,
       .fps = 16,
       .two_passes = true},
      {.class_name = "CogVideoXPipeline",
       .doc = "CogVideoX, videos from text (diffusers)",
       .encoders = {{"text_encoder", 226, &Denoises::text_dim}},
       .text_tokens = {226},
       .steps = 50,
       .height = 480,
       .width = 720,
       .frames = 49,
       .guidance = 6,
       .fps = 8},
      // 95 tokens of the prompt's template are cut off before the denoiser.
      {.class_name = "HunyuanVideoPipeline",
       .doc = "HunyuanVideo (diffusers)",
       .encoders = {{"text_encoder", 256 + 95, &Denoises::text_dim},
                    {"text_encoder_2", 77, &Denoises::pooled_dim}},
       .text_tokens = {256},
       .steps = 50,
       .height = 720,
       .width = 1280,
       .frames = 129,
       .guidance = 6,
       .fps = 15,
       .distilled = true}};
  return table;
}

void refuse_other_networks(const PipelineDef& def, const JsonObject& config) {
  std::set<std::string> known = {"transformer", "vae", "safety_checker"};
  for (const EncoderUse& use : def.encoders) known.insert(use.component);
  for (const auto& item : config.json().items()) {
    const Json& value = item.value();
    const bool has_config =
        value.is_object() && (value.contains("_class_name") || value.contains("architectures"));
    // ["diffusers", class] without a config.
    const bool named = value.is_array() && value.size() == 2 && value[1].is_string() &&
                       find_denoiser(value[1].get<std::string>()) != nullptr;
    if ((has_config || named) && !known.contains(item.key()))
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: the component '{}' is not supported in a {}; known: {}",
                              config.where(), shown_name(item.key()), def.class_name,
                              join({known.begin(), known.end()}, ", ")));
  }
}

}  // namespace tilecast
