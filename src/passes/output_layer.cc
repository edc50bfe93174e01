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
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& reader) {
    return reader.op == keep && reader.inputs[0] == node.outputs[0] && is_output(reader.outputs[0]);
  });
}

}  // namespace tilecast
