#include "passes/adapted_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ops/op_def.h"
#include "passes/output_layer.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr const char* kAllLinear = "all-linear";

}  // namespace

std::string layer_name(const Node& node) {
  const size_t dot = node.name.rfind('.');
  return dot == std::string::npos ? node.name : node.name.substr(dot + 1);
}

bool may_have_adapter(const Graph& graph, const Node& node) {
  if (op_def(node.op).name != "linear" || graph.tensor(node.inputs[1]).role == Role::kRouter)
    return false;
  return !is_output_layer(graph, node);
}

bool is_target(const std::vector<std::string>& targets, const std::string& name) {
  return targets == std::vector<std::string>{kAllLinear} ||
         std::find(targets.begin(), targets.end(), name) != targets.end();
}

void check_targets(const Graph& graph, const std::vector<std::string>& targets,
                   const std::set<std::string>& known) {
  if (known.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("`lora-rank`: {} has no linear layer but the output layer, so it can "
                            "have no adapters; use another model",
                            graph.name));
  if (targets == std::vector<std::string>{kAllLinear}) return;
  for (const std::string& target : targets) {
    if (!known.contains(target))
      throw Error(
          ErrorKind::kInput,
          fmt::format("`lora-targets`: {} has no linear layer '{}'; use all-linear, or {}",
                      graph.name, shown_name(target), join({known.begin(), known.end()}, ", ")));
  }
}

void check_targets(const Graph& modules, const std::vector<std::string>& targets) {
  std::set<std::string> known;
  for (const Node& node : modules.nodes) {
    if (may_have_adapter(modules, node)) known.insert(layer_name(node));
  }
  check_targets(modules, targets, known);
}

}  // namespace tilecast
