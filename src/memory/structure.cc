#include "memory/structure.h"

namespace tilecast {
namespace {

/// The memory of the last input that could be the output; -1 if there is none.
TensorId passed_on(const Graph& graph, const std::vector<TensorId>& storage, const Node& node,
                   const Tensor& out) {
  for (auto id = node.inputs.rbegin(); id != node.inputs.rend(); ++id) {
    const Tensor& input = graph.tensor(*id);
    if (input.dtype == out.dtype && element_count(input.shape) == element_count(out.shape))
      return storage[static_cast<size_t>(*id)];
  }
  return -1;
}

}  // namespace

std::vector<TensorId> find_storage(const Graph& graph) {
  std::vector<TensorId> storage(graph.tensors.size());
  for (size_t t = 0; t < storage.size(); ++t) storage[t] = graph.tensors[t].storage;
  for (const Node& node : graph.nodes) {
    for (const TensorId id : node.outputs) {
      const Tensor& out = graph.tensor(id);
      if (out.storage != id) {
        storage[static_cast<size_t>(id)] = storage[static_cast<size_t>(out.storage)];
      } else if (node.counts == Counts::kTimeOnly) {
        storage[static_cast<size_t>(id)] = passed_on(graph, storage, node, out);
      }
    }
  }
  return storage;
}

bool is_one_layer(const Graph& graph, const Segment& segment) {
  constexpr int kMostResiduals = 3;
  int residuals = 0;
  for (int32_t i = 0; i < segment.node_count; ++i) {
    const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
    if (node.phase != Phase::kForward) return false;
    residuals += node.role == Role::kResidual ? 1 : 0;
  }
  return residuals <= kMostResiduals;
}

std::vector<bool> layer_ends(const Graph& graph, const Segment& segment) {
  std::vector<bool> ends(static_cast<size_t>(segment.node_count), false);
  std::vector<size_t> sums;  // of sublayers with attention
  bool attends = false, has_others = false;
  for (int32_t i = 0; i < segment.node_count; ++i) {
    const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
    attends = attends || node.attention_core;
    if (node.role != Role::kResidual || node.phase != Phase::kForward) continue;
    if (attends) sums.push_back(static_cast<size_t>(i));
    if (!attends) ends[static_cast<size_t>(i)] = has_others = true;
    attends = false;
  }
  if (!has_others) {
    for (const size_t i : sums) ends[i] = true;
  }
  return ends;
}

}  // namespace tilecast
