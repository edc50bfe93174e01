// What Megatron-LM fuses beside pointwise chains.

#include <algorithm>
#include <vector>

#include "ops/op_def.h"
#include "ops/products.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

/// Gradients that products compute, and sums of them.
class ProductSums {
 public:
  explicit ProductSums(Graph& graph) : graph_(graph), of_product_(graph.tensors.size(), false) {}

  void run() {
    for (Node& node : graph_.nodes) {
      if (node.phase != Phase::kBackward) continue;
      if (is_product(node)) {
        // The first output of a layer of experts is its input's gradient, which other layers add
        // to.
        const bool experts = node.op == experts_;
        for (size_t i = experts ? 1 : 0; i < node.outputs.size(); ++i) mark(node.outputs[i]);
      } else if (node.op == view_ && is_marked(node.inputs[0])) {
        mark(node.outputs[0]);
      } else if (node.op == accumulate_ && is_marked(node.inputs[1])) {
        node.counts = Counts::kMemoryOnly;
      } else if (node.op == add_ && is_marked(node.inputs[0]) && is_marked(node.inputs[1])) {
        node.counts = Counts::kMemoryOnly;
        mark(node.outputs[0]);
      }
    }
  }

 private:
  bool is_product(const Node& node) const { return is_gemm(node.op) || node.op == experts_; }
  bool is_marked(TensorId id) const { return of_product_[static_cast<size_t>(id)]; }
  void mark(TensorId id) { of_product_[static_cast<size_t>(id)] = true; }

  const OpId experts_ = require_op("experts_backward");
  const OpId add_ = require_op("add"), accumulate_ = require_op("add_"), view_ = require_op("view");
  Graph& graph_;
  std::vector<bool> of_product_;
};

bool is_pointwise(const Node& node) { return op_def(node.op).pointwise_flops.has_value(); }

bool reads(const Node& node, TensorId id) {
  return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
}

}  // namespace

void sum_in_products(Graph& graph) { ProductSums(graph).run(); }

void join_pointwise(Graph& graph) {
  std::vector<int> uses(graph.tensors.size(), 0);
  const auto use = [&](TensorId id) { uses[static_cast<size_t>(id)] += 1; };
  for (const Node& node : graph.nodes) {
    for (const TensorId id : node.inputs) use(id);
  }
  for (const Segment& segment : graph.segments) {
    for (const Carry& carry : segment.carries) use(carry.initial), use(carry.next);
  }
  for (const TensorId id : graph.outputs) use(id);
  for (const Tensor& tensor : graph.tensors) use(tensor.storage);  // of itself, and of views
  constexpr int kOneReader = 2;
  for (const Segment& segment : graph.segments) {
    const auto first = graph.nodes.begin() + segment.first_node;
    const auto end = first + segment.node_count;
    for (auto node = end; node != first;) {
      --node;
      if (!is_pointwise(*node) || node->outputs.size() != 1) continue;
      const TensorId made = node->outputs[0];
      if (uses[static_cast<size_t>(made)] != kOneReader) continue;
      const auto reader =
          std::find_if(node + 1, end, [&](const Node& later) { return reads(later, made); });
      const bool joins = reader != end && is_pointwise(*reader) && reader->outputs.size() == 1 &&
                         graph.tensor(reader->outputs[0]).shape == graph.tensor(made).shape;
      if (joins) std::rotate(node, node + 1, reader);
    }
  }
  validate_if_debug(graph);
}

}  // namespace tilecast
