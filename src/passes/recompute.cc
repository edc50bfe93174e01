#include "passes/recompute.h"

#include <map>

#include "ops/op_def.h"

namespace tilecast {

Recomputed recompute(GradientBuilder& g, const std::vector<Node>& nodes) {
  Recomputed run{.first_node = static_cast<int32_t>(g.graph().nodes.size()), .copies = {}};
  std::map<TensorId, TensorId> now;
  g.builder().set_recomputed(true);
  for (const Node& node : nodes) {
    Node copy = node;
    for (TensorId& id : copy.inputs) {
      if (const auto it = now.find(id); it != now.end()) id = it->second;
    }
    g.builder().set_counts(node.counts);
    const RoleScope role(g.builder(), node.role);
    copy.outputs = g.builder().add(op_def(node.op).name, copy.inputs, node.name, node.attributes);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      now[node.outputs[i]] = copy.outputs[i];
      g.stand_in(copy.outputs[i], node.outputs[i]);
    }
    run.copies.push_back(std::move(copy));
  }
  g.builder().set_counts(Counts::kAll);
  g.builder().set_recomputed(false);
  return run;
}

void remove_unneeded(Graph& graph, const Recomputed& run) {
  std::vector<bool> read(graph.tensors.size(), false);
  const auto mark = [&](const Node& node) {
    for (const TensorId id : node.inputs) read[static_cast<size_t>(id)] = true;
  };
  const auto first = static_cast<size_t>(run.first_node), count = run.copies.size();
  for (size_t i = first + count; i < graph.nodes.size(); ++i) mark(graph.nodes[i]);
  for (size_t i = first + count; i-- > first;) {
    bool needed = false;
    for (const TensorId id : graph.nodes[i].outputs)
      needed = needed || read[static_cast<size_t>(id)];
    if (needed) {
      mark(graph.nodes[i]);
      continue;
    }
    graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    graph.segments.back().node_count -= 1;
  }
}

}  // namespace tilecast
