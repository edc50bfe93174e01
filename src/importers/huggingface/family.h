#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "importers/model.h"

namespace tilecast {

/// One family of Hugging Face models, by the `model_type` of its config.json.
struct FamilyDef {
  std::string_view model_type;
  std::string_view doc;
  Model (*read)(const JsonObject& config);
};

// The families, one file for each architecture.
Model read_gpt2(const JsonObject& config);
Model read_bert(const JsonObject& config);
Model read_opt(const JsonObject& config);
Model read_llama(const JsonObject& config);
Model read_t5(const JsonObject& config);

/// Largest size that a config may name; beyond it is a typing mistake.
inline constexpr int64_t kLargestSize = int64_t{1} << 31;

/// heads × head size must be the width. Throws Error{kInput} naming both fields.
int64_t head_size(const JsonObject& config, std::string_view width_key, int64_t width,
                  std::string_view heads_key, int64_t heads);

}  // namespace tilecast
