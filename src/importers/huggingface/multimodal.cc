#include "importers/huggingface/multimodal.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "importers/huggingface/vision_tower.h"

namespace tilecast {

std::string text_field(const JsonObject& config) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (config.has(key)) return key;
  }
  return "";
}

Json multimodal_text(const JsonObject& json, const std::string& key) {
  const JsonObject given = json.object(key);
  Json text = Json::object();
  // Published Gemma 3 configs leave out fields with transformers' default values
  // (Gemma3TextConfig).
  if (json.optional_string({"model_type"}).value_or("") == "gemma3")
    text = {{"model_type", "gemma3_text"},
            {"num_attention_heads", 8},
            {"num_key_value_heads", 4},
            {"head_dim", 256},
            {"vocab_size", 262208},
            {"max_position_embeddings", 131072},
            {"hidden_activation", "gelu_pytorch_tanh"}};
  text.update(given.json());
  // Fields that apply to all parts are in the outer config.
  for (const char* field : {"quantization_config", kQuantConfigFile, "torch_dtype", "dtype"}) {
    if (!given.has(field) && json.has(field)) text[field] = json.json()[field];
  }
  // The output layer belongs to the whole model: transformers asks the outer config.
  if (json.has("tie_word_embeddings"))
    text["tie_word_embeddings"] = json.json()["tie_word_embeddings"];
  return text;
}

void add_other_parts(const JsonObject& config, const std::string& field, Model& model) {
  const std::string type = shown_name(config.optional_string({"model_type"}).value_or(""));
  if (config.has("vision_config") && model.decoder)
    model.vision = read_vision_tower(config, model.decoder->hidden_dim);
  if (!model.vision) {
    model.warnings.push_back(
        fmt::format("only the language model{1} of '{0}' is forecast, not its other parts", type,
                    field.empty() ? "" : fmt::format(" ('{}')", field)));
  } else if (config.has("audio_config")) {
    model.warnings.push_back(fmt::format("the audio part of '{}' is not forecast", type));
  }
}

}  // namespace tilecast
