#include "passes/fused_kernel.h"

#include <algorithm>
#include <unordered_set>

#include "ops/op_def.h"

namespace tilecast {

std::vector<int> use_counts(const Graph& graph) {
  std::vector<int> uses(graph.tensors.size(), 0);
  const auto count = [&](const std::vector<TensorId>& read) {
    for (const TensorId id : read) uses[static_cast<size_t>(id)] += 1;
  };
  for (const Node& node : graph.nodes) count(node.inputs);
  // Outputs of the graph and carried tensors must be written.
  count(graph.outputs);
  count(graph.losses);
  for (const Segment& segment : graph.segments) {
    for (const Carry& carry : segment.carries) uses[static_cast<size_t>(carry.next)] += 1;
  }
  return uses;
}

Node fused_kernel(const Graph& graph, std::span<const Node> nodes, int64_t flops,
                  const std::function<bool(TensorId)>& made,
                  const std::function<bool(TensorId)>& written) {
  const auto over_rows = std::find_if(nodes.begin(), nodes.end(), [](const Node& node) {
    return op_def(node.op).row_fusion.has_value();
  });
  const Node* rows = over_rows == nodes.end() ? nullptr : &*over_rows;
  const Node& named = rows != nullptr ? *rows : nodes.front();
  const std::string_view op =
      rows != nullptr ? op_def(rows->op).row_fusion->fused : "fused_pointwise";
  Node fused{.name = named.name,
             .op = require_op(op),
             .inputs = {},
             .outputs = {},
             .attributes = {},
             .phase = nodes.front().phase,
             .counts = nodes.front().counts,
             .role = role_fits_op(named.role, op) ? named.role : Role::kNone};
  std::unordered_set<TensorId> listed;
  const auto list_output = [&](TensorId id) {
    if (listed.insert(id).second) fused.outputs.push_back(id);
  };
  if (rows != nullptr) {
    flops += op_def(rows->op).row_fusion->flops_per_element;
    for (const TensorId id : rows->outputs) {
      if (id != rows->outputs.front() || written(id)) list_output(id);
    }
  }
  for (const Node& node : nodes) {
    if (node.counts == Counts::kAll) fused.counts = Counts::kAll;
    for (const TensorId id : node.inputs) {
      if (!made(id) && listed.insert(id).second) fused.inputs.push_back(id);
    }
    for (const TensorId id : node.outputs) {
      if (written(id)) list_output(id);
    }
  }
  const TensorId last = nodes.back().outputs[0];
  if (fused.outputs.empty()) fused.outputs.push_back(last);
  // The shape of a kernel over rows is that of its first output.
  if (rows != nullptr) {
    const Shape& shape = graph.tensor(rows->outputs[0]).shape;
    const auto whole = std::find_if(fused.outputs.begin(), fused.outputs.end(),
                                    [&](TensorId id) { return graph.tensor(id).shape == shape; });
    if (whole == fused.outputs.end()) {
      fused.outputs.insert(fused.outputs.begin(), rows->outputs[0]);
    } else {
      std::rotate(fused.outputs.begin(), whole, whole + 1);
    }
  }
  // Where only a sum of the elements is written, each of its results stands for several.
  int64_t widest = 1;
  for (const Node& node : nodes) {
    for (const TensorId id : node.outputs)
      widest = std::max(widest, element_count(graph.tensor(id).shape));
  }
  const int64_t first = element_count(graph.tensor(fused.outputs.front()).shape);
  if (rows == nullptr) flops *= std::max<int64_t>(1, widest / std::max<int64_t>(1, first));
  fused.attributes = {{"flops_per_element", flops}};
  return fused;
}

}  // namespace tilecast
