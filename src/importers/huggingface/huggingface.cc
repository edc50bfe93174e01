// Hugging Face config.json: sizes alone, no weights, no Python.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/family.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

const std::vector<FamilyDef>& families() {
  static const std::vector<FamilyDef> table = {
      {"gpt2", "GPT-2 and GPT-3 sizes", read_gpt2},
      {"bert", "BERT encoders", read_bert},
      {"opt", "OPT decoders", read_opt},
      {"llama", "Llama 1, 2, 3", read_decoder},
      {"llama4_text", "Llama 4, text part", read_decoder},
      {"llama4", "Llama 4, its text part", read_multimodal_decoder},
      {"mistral", "Mistral", read_decoder},
      {"mixtral", "Mixtral", read_decoder},
      {"qwen2", "Qwen2 and 2.5", read_decoder},
      {"qwen2_moe", "Qwen2 with experts", read_decoder},
      {"qwen3", "Qwen3", read_decoder},
      {"qwen3_moe", "Qwen3 with experts", read_decoder},
      {"gemma2", "Gemma 2", read_decoder},
      {"gemma3_text", "Gemma 3, text part", read_decoder},
      {"gemma3", "Gemma 3, its text part", read_multimodal_decoder},
      {"phi3", "Phi-3 and Phi-4", read_decoder},
      {"gpt_oss", "gpt-oss", read_decoder},
      {"falcon", "Falcon", read_decoder},
      {"deepseek_v2", "DeepSeek-V2", read_decoder},
      {"deepseek_v3", "DeepSeek-V3 and R1", read_decoder},
      {"glm4", "GLM-4", read_decoder},
      {"glm4_moe", "GLM-4.5 with experts", read_decoder},
      {"vit", "Vision transformers", read_vit},
      {"clip", "CLIP, both towers", read_clip},
      {"whisper", "Whisper", read_whisper},
      {"UNet2DConditionModel", "Stable Diffusion's U-Net (diffusers)", read_unet},
      {"DiTTransformer2DModel", "diffusion transformers (diffusers)", read_dit},
      {"t5", "T5 encoder-decoders", read_t5},
      {"switch_transformers", "Switch Transformers: T5 with experts", read_t5},
  };
  return table;
}

bool sniff(std::string_view file_name, std::string_view content) {
  if (file_name.ends_with(".json")) return true;
  const std::string_view text = trim(content);
  return !text.empty() && text.front() == '{';
}

Model import_config(std::string_view content, const std::string& where) {
  const Json json = parse_json(content, where);
  const JsonObject config(json, where);
  std::vector<std::string> names;
  for (const FamilyDef& family : families()) names.emplace_back(family.model_type);
  // diffusers name the class instead.
  const std::string key =
      config.has("model_type") || !config.has("_class_name") ? "model_type" : "_class_name";
  if (!config.has(key))
    config.fail("model_type", "is missing; expected one of " + join(names, ", "));
  const std::string type = config.string(key);
  for (const FamilyDef& family : families()) {
    if (family.model_type != type) continue;
    Model model = family.read(config);
    model.family = type;
    return model;
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: '{}': unknown family '{}'{}; known: {}", where, key,
                          shown_name(type), did_you_mean(type, names), join(names, ", ")));
}

}  // namespace

int64_t head_size(const JsonObject& config, std::string_view width_key, int64_t width,
                  std::string_view heads_key, int64_t heads) {
  if (width % heads != 0)
    config.fail(std::string(heads_key),
                fmt::format("{} heads do not divide the width {} ('{}')", heads, width, width_key));
  return width / heads;
}

ImporterDef huggingface_importer() {
  return {.name = "huggingface",
          .doc = "config.json of a Hugging Face model",
          .sniff = sniff,
          .import = import_config};
}

}  // namespace tilecast
