#include <algorithm>

#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

bool contains(const std::vector<TensorId>& ids, TensorId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// A chain of nodes that can become one kernel.
struct Chain {
  std::vector<Node> nodes;

  bool makes(TensorId id) const {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const Node& node) { return contains(node.outputs, id); });
  }
};

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), uses_(graph.tensors.size(), 0) {
    for (const Node& node : graph.nodes) {
      for (TensorId id : node.inputs) uses_[static_cast<size_t>(id)] += 1;
    }
    // Outputs of the graph and carried tensors must be written.
    for (TensorId id : graph.outputs) uses_[static_cast<size_t>(id)] += 1;
    for (TensorId id : graph.losses) uses_[static_cast<size_t>(id)] += 1;
    for (const Segment& segment : graph.segments) {
      for (const Carry& carry : segment.carries) uses_[static_cast<size_t>(carry.next)] += 1;
    }
    // A view needs the memory of its base.
    for (const Tensor& tensor : graph.tensors) {
      const auto own = static_cast<size_t>(&tensor - graph.tensors.data());
      if (static_cast<size_t>(tensor.storage) != own)
        uses_[static_cast<size_t>(tensor.storage)] += 1;
    }
  }

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Segment& segment : graph_.segments) {
      const auto first = static_cast<size_t>(segment.first_node);
      segment.first_node = static_cast<int32_t>(graph_.nodes.size());
      for (int32_t i = 0; i < segment.node_count; ++i)
        take(std::move(before[first + static_cast<size_t>(i)]));
      flush();
      segment.node_count = static_cast<int32_t>(graph_.nodes.size()) - segment.first_node;
    }
  }

 private:
  /// Whether both the node and the chain take time, or neither.
  bool takes_time_alike(const Node& node) const {
    return (node.counts == Counts::kMemoryOnly) ==
           (chain_.nodes.front().counts == Counts::kMemoryOnly);
  }

  bool fits(const Node& node) const {
    if (!op_def(node.op).pointwise_flops || node.phase == Phase::kOptimizer) return false;
    if (chain_.nodes.empty()) return true;
    if (!takes_time_alike(node)) return false;
    const bool reads_chain = std::any_of(node.inputs.begin(), node.inputs.end(),
                                         [&](TensorId id) { return chain_.makes(id); });
    return reads_chain && same_shape(node);
  }

  bool same_shape(const Node& node) const {
    return graph_.tensor(node.outputs[0]).shape ==
           graph_.tensor(chain_.nodes.front().outputs[0]).shape;
  }

  void take(Node node) {
    if (!op_def(node.op).pointwise_flops) {
      // A view launches no kernel, so it does not end a chain unless it reads the chain.
      const bool launches = op_def(node.op).work != nullptr;
      const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                     [&](TensorId id) { return chain_.makes(id); });
      if (op_def(node.op).row_fusion && reads && same_shape(node) && takes_time_alike(node)) {
        chain_.nodes.push_back(std::move(node));
        return flush();
      }
      if (launches || reads) flush();
      graph_.nodes.push_back(std::move(node));
      return;
    }
    if (!fits(node)) flush();
    chain_.nodes.push_back(std::move(node));
  }

  void flush() {
    if (chain_.nodes.size() < 2) {
      for (Node& node : chain_.nodes) graph_.nodes.push_back(std::move(node));
      chain_.nodes.clear();
      return;
    }
    Node fused = fuse();
    chain_.nodes.clear();
    graph_.nodes.push_back(std::move(fused));
  }

  Node fuse() const {
    const std::optional<RowFusion>& rows = op_def(chain_.nodes.back().op).row_fusion;
    const Node& named = rows ? chain_.nodes.back() : chain_.nodes.front();
    const std::string_view op = rows ? rows->fused : "fused_pointwise";
    Node fused{.name = named.name,
               .op = require_op(op),
               .inputs = {},
               .outputs = {},
               .attributes = {},
               .phase = chain_.nodes.front().phase,
               .counts = chain_.nodes.front().counts,
               .role = role_fits_op(named.role, op) ? named.role : Role::kNone};
    for (const Node& node : chain_.nodes) {
      if (node.counts == Counts::kAll) fused.counts = Counts::kAll;
    }
    int64_t flops = rows ? rows->flops_per_element : 0;
    // The shape of a kernel over rows is that of its first output.
    if (rows) fused.outputs = chain_.nodes.back().outputs;
    for (const Node& node : chain_.nodes) {
      flops += op_def(node.op).pointwise_flops.value_or(0);
      for (TensorId id : node.inputs) {
        if (!chain_.makes(id) && !contains(fused.inputs, id)) fused.inputs.push_back(id);
      }
      for (TensorId id : node.outputs) {
        if (used_outside(id) && !contains(fused.outputs, id)) fused.outputs.push_back(id);
      }
    }
    if (fused.outputs.empty()) fused.outputs.push_back(chain_.nodes.back().outputs[0]);
    fused.attributes = {{"flops_per_element", flops}};
    return fused;
  }

  bool used_outside(TensorId id) const {
    int inside = 0;
    for (const Node& node : chain_.nodes)
      inside += static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), id));
    return uses_[static_cast<size_t>(id)] > inside;
  }

  Graph& graph_;
  std::vector<int> uses_;
  Chain chain_;
};

}  // namespace

void fuse_pointwise(Graph& graph) {
  Fuser(graph).run();
  validate_if_debug(graph);
}

}  // namespace tilecast
