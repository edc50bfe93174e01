#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "importers/model.h"

namespace tilecast {

/// One family of Hugging Face models, identified by the `model_type` of its config.json.
struct FamilyDef {
  std::string_view model_type;
  /// The prefix of class names in `architectures` ("Llama" of LlamaForCausalLM), used if the
  /// model_type is unknown. "": none.
  std::string_view architecture;
  std::string_view doc;
  Model (*read)(const JsonObject& config);
};

/// A model of any family. Throws Error{kInput} or Error{kUnsupported} that names the field.
Model read_config(const Json& json, const std::string& where);

/// Reads dtypes and quantization. A quantization that cannot be read is stored as `problem`. Throws
/// Error{kInput} for fields of a wrong type.
Checkpoint read_checkpoint(const JsonObject& config);

/// A Model that builds its graphs from a parsed config.
template <typename Config>
Model make_model(const Config& config, int64_t default_seq, std::optional<int64_t> max_positions,
                 Graph (*build)(const Config&, const GraphRequest&)) {
  Model model;
  model.default_seq = default_seq;
  model.max_positions = max_positions;
  model.build = [config, build](const GraphRequest& request) { return build(config, request); };
  model.has_modules = true;
  return model;
}

/// A Model of images: the config fixes their size.
template <typename Config>
Model make_image_model(const Config& config, Graph (*build)(const Config&, const GraphRequest&),
                       int64_t tokens = 1) {
  Model model = make_model(config, tokens, std::nullopt, build);
  model.fixed_seq = true;
  return model;
}

/// Whether a probability of dropout is above 0, so that training runs its kernels. `otherwise`: the
/// probability where the config states none.
bool drops(const JsonObject& config, const char* key, double otherwise);

/// Upper limit for sizes in configs; anything larger is a typing mistake.
inline constexpr int64_t kLargestConfigSize = int64_t{1} << 31;

/// hidden_dim / heads. Throws Error{kInput} that names both fields if it is not a whole number.
int64_t head_dim_of(const JsonObject& config, std::string_view hidden_key, int64_t hidden_dim,
                    std::string_view heads_key, int64_t heads);

}  // namespace tilecast
