#include <algorithm>
#include <cstdint>
#include <utility>

#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/fused_kernel.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

/// Marks for tensors that all go when the next chain begins.
class Marks {
 public:
  explicit Marks(size_t tensors) : marked_(tensors, 0) {}
  bool has(TensorId id) const { return marked_[static_cast<size_t>(id)] == chain_; }
  /// False if it was marked already.
  bool add(TensorId id) {
    return std::exchange(marked_[static_cast<size_t>(id)], chain_) != chain_;
  }
  void clear() { ++chain_; }

 private:
  std::vector<uint32_t> marked_;
  uint32_t chain_ = 1;
};

class Fuser {
 public:
  explicit Fuser(Graph& graph)
      : graph_(graph),
        uses_(use_counts(graph)),
        inside_(graph.tensors.size(), 0),
        made_(graph.tensors.size()),
        read_(graph.tensors.size()) {
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
    return (node.counts == Counts::kMemoryOnly) == (chain_.front().counts == Counts::kMemoryOnly);
  }

  bool fits(const Node& node) const {
    if (!op_def(node.op).pointwise_flops || node.phase == Phase::kOptimizer) return false;
    if (chain_.empty()) return true;
    if (!takes_time_alike(node)) return false;
    const bool reads_chain = std::any_of(node.inputs.begin(), node.inputs.end(),
                                         [&](TensorId id) { return made_.has(id); });
    return reads_chain && same_shape(node);
  }

  bool same_shape(const Node& node) const {
    return graph_.tensor(node.outputs[0]).shape == graph_.tensor(chain_.front().outputs[0]).shape;
  }

  void take(Node node) {
    if (!op_def(node.op).pointwise_flops) {
      // A view launches no kernel, so it does not end a chain unless it reads the chain.
      const bool launches = op_def(node.op).work != nullptr;
      const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                     [&](TensorId id) { return made_.has(id); });
      if (op_def(node.op).row_fusion && reads && same_shape(node) && takes_time_alike(node)) {
        extend(std::move(node));
        return flush();
      }
      if (launches || reads) flush();
      graph_.nodes.push_back(std::move(node));
      return;
    }
    if (!fits(node)) flush();
    extend(std::move(node));
  }

  void extend(Node node) {
    for (const TensorId id : node.inputs) {
      int& count = inside_[static_cast<size_t>(id)];
      count = read_.add(id) ? 1 : count + 1;
    }
    for (const TensorId id : node.outputs) made_.add(id);
    chain_.push_back(std::move(node));
  }

  void clear() {
    chain_.clear();
    for (Marks* marks : {&made_, &read_}) marks->clear();
  }

  void flush() {
    if (chain_.size() < 2) {
      for (Node& node : chain_) graph_.nodes.push_back(std::move(node));
      clear();
      return;
    }
    Node fused = fuse();
    clear();
    graph_.nodes.push_back(std::move(fused));
  }

  Node fuse() const {
    int64_t flops = 0;
    for (const Node& node : chain_) flops += op_def(node.op).pointwise_flops.value_or(0);
    return fused_kernel(
        graph_, chain_, flops, [&](TensorId id) { return made_.has(id); },
        [&](TensorId id) { return used_outside(id); });
  }

  bool used_outside(TensorId id) const {
    const int inside = read_.has(id) ? inside_[static_cast<size_t>(id)] : 0;
    return uses_[static_cast<size_t>(id)] > inside;
  }

  Graph& graph_;
  std::vector<int> uses_;    ///< by all of the graph
  std::vector<int> inside_;  ///< by the chain, of tensors in read_
  std::vector<Node> chain_;  ///< nodes that can become one kernel
  Marks made_, read_;
};

}  // namespace

void fuse_pointwise(Graph& graph) {
  Fuser(graph).run();
  validate_if_debug(graph);
}

}  // namespace tilecast
