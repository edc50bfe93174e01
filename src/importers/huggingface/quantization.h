#pragma once

// How the weights of a checkpoint are stored: `quantization_config` of its config.json, or
// ModelOpt's hf_quant_config.json beside it.

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "graph/scheme.h"

namespace tilecast {

/// Names of modules as configs list them: whole or partial dotted names, "*" for any text, and
/// "re:" before regular expressions, which match as Python's re.match: from the start of the
/// checkpoint's name ("model.layers.3.mlp.up_proj"), not always to its end.
class ModuleNames {
 public:
  /// False where the name is a regular expression that cannot be read; it then matches nothing.
  [[nodiscard]] bool add(const std::string& name);
  /// Whether one of them is the module, something around it, or a dotted part of its name.
  bool match(std::string_view module) const;
  bool empty() const { return exact_.empty() && globs_.empty() && patterns_.empty(); }

 private:
  bool match_patterns(const std::string& name) const;

  std::unordered_set<std::string> exact_;
  std::vector<std::string> globs_;
  std::vector<std::regex> patterns_;
};

struct Quantization {
  std::string source;  ///< "quantization_config" or "hf_quant_config.json"
  QuantScheme scheme =
      QuantScheme::kNone;  ///< of linear layers and experts that nothing below names
  bool experts_only = false;
  ModuleNames excluded;
  std::map<QuantScheme, ModuleNames> named;  ///< modules with a scheme of their own
  std::optional<DType> kv_dtype;
  std::vector<std::string> warnings;  ///< what is forecast otherwise than it says

  /// How a linear layer or the experts are stored, by the name of its node in a graph
  /// ("layers.3.self_attn.q_proj", "layers.3.mlp.experts"). Routers, tables and the output layer
  /// keep their type unless they are named.
  QuantScheme of(std::string_view module) const;
};

/// nullopt where the config says nothing. Throws Error{kUnsupported} for a scheme that is not
/// known, Error{kInput} for fields of a wrong type.
std::optional<Quantization> read_quantization(const JsonObject& config);

}  // namespace tilecast
