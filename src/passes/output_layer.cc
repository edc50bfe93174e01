#include "passes/output_layer.h"

#include <algorithm>

#include "ops/op_def.h"

namespace tilecast {

bool is_output_layer(const Graph& graph, const Node& node) {
  static const OpId keep = require_op("keep");
  if (node.role == Role::kOutput) return true;
  const auto is_output = [&](TensorId id) {
    return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
  };
  if (std::any_of(node.outputs.begin(), node.outputs.end(), is_output)) return true;
  if (graph.outputs.size() != 1) return false;
  // Variables are held beside the one output, which one of the last nodes makes.
  const auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), [&](const Node& maker) {
    return std::find(maker.outputs.begin(), maker.outputs.end(), graph.outputs.front()) !=
           maker.outputs.end();
  });
  return last != graph.nodes.rend() && last->op == keep && last->inputs[0] == node.outputs[0];
}

}  // namespace tilecast
