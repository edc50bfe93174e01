#pragma once

// How the weights of a checkpoint are stored: `quantization_config` of its config.json, or
// ModelOpt's hf_quant_config.json beside it.

#include <map>
#include <optional>
#include <regex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "graph/scheme.h"
#include "graph/storage.h"

namespace tilecast {

/// The work of comparing all modules of a model with names. Ends at the budget.
class NameSteps {
 public:
  /// `where`: the config.
  explicit NameSteps(std::string where) : where_(std::move(where)) {}
  /// Throws Error{kUnsupported}.
  void add(size_t steps);

 private:
  std::string where_;
  int64_t taken_ = 0;
};

/// Module names as listed in configs: complete or partial dotted names, with "*" for any text, and
/// regular expressions with the prefix "re:". These match like Python's re.match: from the start of
/// the name in the checkpoint ("model.layers.3.mlp.up_proj"), not necessarily to its end.
class ModuleNames {
 public:
  /// Returns false if the name is a regular expression that is not supported; it then matches
  /// nothing.
  [[nodiscard]] bool add(const std::string& name);
  /// Whether one of the names matches the module, a module around it, or a dotted part of its name.
  bool match(std::string_view module, NameSteps& steps) const;
  bool empty() const { return exact_.empty() && globs_.empty() && patterns_.empty(); }

 private:
  struct Glob {
    std::string text;
    std::string needed;  ///< a part of all names that it matches
  };
  struct Pattern {
    std::regex regex;
    std::string needed;
    size_t letter_steps = 0;  ///< for a letter of a name
  };
  bool match_exact(const std::string& name) const;
  bool match_globs(std::string_view name, NameSteps& steps) const;
  bool match_patterns(const std::string& name, NameSteps& steps) const;

  std::unordered_set<std::string> exact_;
  std::vector<Glob> globs_;
  std::vector<Pattern> patterns_;
};

struct Quantization {
  std::string source;  ///< "quantization_config" or "hf_quant_config.json"
  QuantScheme scheme =
      QuantScheme::kNone;  ///< of linear layers and experts that are not named below
  bool experts_only = false;
  ModuleNames excluded;
  std::map<QuantScheme, ModuleNames> named;  ///< modules with a scheme of their own, by scheme
  StorageTable storage;                      ///< of the schemes in use
  bool storage_differs = false;              ///< modules of one scheme are stored differently
  std::optional<DType> kv_dtype;
  std::vector<std::string> warnings;  ///< deviations of the forecast from the config
  /// Names of modules that are no patterns; the first are named, the others counted, in the warning
  /// of this index.
  size_t unreadable_names = 0, further_names = 0;

  /// The scheme of a linear layer or a layer of experts, by the name of its node in the graph
  /// ("layers.3.self_attn.q_proj", "layers.3.mlp.experts"). Routers, embedding tables and the
  /// output layer are not quantized unless they are named.
  QuantScheme of(std::string_view module, NameSteps& steps) const;
};

/// The schemes of a model's modules. Each is looked for once, however many graphs ask for it.
class ModuleSchemes {
 public:
  ModuleSchemes(Quantization quantization, std::string where)
      : quantization_(std::move(quantization)), steps_(std::move(where)) {}

  /// Throws Error{kUnsupported} where the names that the config lists take too long to compare.
  QuantScheme of(std::string_view module);

 private:
  const Quantization quantization_;
  std::shared_mutex mutex_;  ///< of what follows: requests on several threads share a model
  std::unordered_map<std::string, QuantScheme> known_;
  NameSteps steps_;
};

// How checkpoints store weights, by the format of their config (quantization_storage.cc). All throw
// Error{kInput} for fields of a wrong type.

/// "fp8" of transformers and vLLM: one scale, or one for each block (`weight_block_size`).
WeightStorage fp8_storage(const JsonObject& q);
/// One fp32 scale for each output channel.
WeightStorage channel_storage(QuantScheme scheme);
/// AWQ packs without the group of each input, which GPTQ stores (g_idx).
enum class PackedBy { kAwq, kGptq };
WeightStorage gptq_storage(const JsonObject& q, QuantScheme scheme, PackedBy packer);
WeightStorage bitsandbytes_storage(const JsonObject& q, QuantScheme scheme);
/// ModelOpt's `quant_algo`.
WeightStorage algorithm_storage(const JsonObject& q, const std::string& algorithm,
                                QuantScheme scheme);
/// A group of compressed-tensors.
WeightStorage group_storage(const JsonObject& group, QuantScheme scheme);
void add_storage(Quantization& result, QuantScheme scheme, const WeightStorage& storage);

/// nullopt if the config has no quantization. Throws Error{kUnsupported} for an unknown scheme,
/// Error{kInput} for fields of a wrong type.
std::optional<Quantization> read_quantization(const JsonObject& config);

}  // namespace tilecast
