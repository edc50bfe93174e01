#pragma once

// How the weights of a checkpoint are stored: `quantization_config` of its config.json, or
// ModelOpt's hf_quant_config.json beside it.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "graph/scheme.h"

namespace tilecast {

/// Names of modules as configs list them: whole or partial dotted names, "*" for any text, and
/// "re:" before simple regular expressions.
class ModuleNames {
 public:
  void add(const std::string& name);
  /// Whether one of them is the module, something around it, or a dotted part of its name.
  bool match(std::string_view module) const;
  bool empty() const { return exact_.empty() && globs_.empty(); }

 private:
  std::unordered_set<std::string> exact_;
  std::vector<std::string> globs_;
};

struct Quantization {
  std::string source;             ///< "quantization_config" or "hf_quant_config.json"
  Scheme scheme = Scheme::kNone;  ///< of linear layers and experts that nothing below names
  bool experts_only = false;
  ModuleNames excluded;
  std::map<Scheme, ModuleNames> named;  ///< modules with a scheme of their own
  std::optional<DType> kv_dtype;
  std::vector<std::string> warnings;  ///< what is forecast otherwise than it says

  /// How a linear layer or the experts are stored, by the name of its node in a graph
  /// ("layers.3.self_attn.q_proj", "layers.3.mlp.experts"). Routers, tables and the output layer
  /// keep their type unless they are named.
  Scheme of(std::string_view module) const;
};

/// nullopt where the config says nothing. Throws Error{kUnsupported} for a scheme that is not
/// known, Error{kInput} for fields of a wrong type.
std::optional<Quantization> read_quantization(const JsonObject& config);

/// The field that import puts the content of hf_quant_config.json into.
inline constexpr const char* kBesideConfig = "hf_quant_config.json";

}  // namespace tilecast
