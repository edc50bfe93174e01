// `rope_scaling` (transformers 4) or `rope_parameters` (transformers 5) of a config. It changes the
// maximum length of sequences; a factor on cosines and sines also decides which kernels apply them.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/decoder.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

/// How each type changes the maximum length. Source: vLLM 0.10, vllm/config,
/// _get_and_verify_max_len.
enum class Reach {
  kAsGiven,   ///< max_position_embeddings includes the scaling already
  kFactor,    ///< max_position_embeddings times the factor
  kOriginal,  ///< original_max_position_embeddings times the factor
};

struct RopeType {
  std::string_view name;
  Reach reach;
};

/// Types in transformers 4.57 and 5.0 (modeling_rope_utils.py), with their older names.
constexpr RopeType kRopeTypes[] = {
    {"default", Reach::kAsGiven},      {"linear", Reach::kFactor},
    {"dynamic", Reach::kFactor},       {"yarn", Reach::kOriginal},
    {"longrope", Reach::kAsGiven},     {"su", Reach::kAsGiven},
    {"llama3", Reach::kAsGiven},       {"mrope", Reach::kAsGiven},
    {"proportional", Reach::kAsGiven}, {"deepseek_yarn", Reach::kOriginal}};

std::string key_of(const JsonObject& config) {
  return config.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
}

}  // namespace

bool has_attention_factor(const JsonObject& config) {
  const std::string key = key_of(config);
  if (!config.has(key)) return false;
  const JsonObject rope = config.object(key);
  if (rope.optional_string({"rope_type", "type"}).value_or("") != "yarn") return false;
  if (rope.has("attention_factor")) return rope.number("attention_factor") != 1;
  const auto of = [&](const char* name) { return rope.has(name) ? rope.number(name) : 0; };
  // transformers, modeling_rope_utils.py, _compute_yarn_parameters: 0.1 mscale ln(factor) + 1, or
  // the ratio of two of these.
  if (of("mscale") != 0 && of("mscale_all_dim") != 0) return of("mscale") != of("mscale_all_dim");
  return of("factor") > 1;
}

int64_t scaled_positions(const JsonObject& config, int64_t positions) {
  // The positions of Gemma 3 include the scaling already, for any type (same function of vLLM).
  const bool counted = config.optional_string({"model_type"}).value_or("").starts_with("gemma3");
  const std::string key = key_of(config);
  if (!config.has(key)) return positions;
  const JsonObject rope = config.object(key);
  const std::optional<std::string> type = rope.optional_string({"rope_type", "type"});
  // Without a type there is no scaling, or there is an entry for each kind of layer.
  if (!type) return positions;
  const auto* known = std::find_if(std::begin(kRopeTypes), std::end(kRopeTypes),
                                   [&](const RopeType& t) { return t.name == *type; });
  if (known == std::end(kRopeTypes)) {
    std::vector<std::string> names;
    for (const RopeType& t : kRopeTypes) names.emplace_back(t.name);
    rope.fail(rope.has("rope_type") ? "rope_type" : "type",
              fmt::format("unknown scaling of rotary positions '{}'{}; known: {}",
                          shown_name(*type), did_you_mean(*type, names), join(names, ", ")));
  }
  if (counted || known->reach == Reach::kAsGiven || !rope.has("factor")) return positions;
  const double factor = rope.number("factor");
  constexpr double kMaxFactor = 1e6;
  if (!(factor > 0) || factor > kMaxFactor)
    rope.fail("factor", fmt::format("expected a number above 0 and at most {}, found {}",
                                    kMaxFactor, factor));
  int64_t from = positions;
  if (known->reach == Reach::kOriginal)
    from = rope.optional_integer({"original_max_position_embeddings"}, 1, kLargestConfigSize)
               .value_or(positions);
  const double scaled = static_cast<double>(from) * factor;
  return static_cast<int64_t>(std::clamp(scaled, 1.0, static_cast<double>(kLargestConfigSize)));
}

}  // namespace tilecast
