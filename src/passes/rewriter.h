#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ops/builder.h"
#include "ops/validate.h"

namespace tilecast {

/// Rewrites a graph node by node; the dtypes of outputs follow from the new inputs.
class Rewriter {
 public:
  /// Adds the replacement of a node, given its inputs in the new graph. Returns its outputs; -1 for
  /// one that nothing reads.
  using Rule =
      std::function<std::vector<TensorId>(GraphBuilder&, const Node&, std::vector<TensorId>)>;

  /// Called before each segment but the first; may add nodes to the segment before it. `now` maps
  /// the tensors of the old graph to the tensors of the new one.
  using Before = std::function<void(GraphBuilder&, int32_t segment, std::vector<TensorId>& now)>;

  Rewriter(const Graph& from, Rule rule, Before before = nullptr)
      : from_(from), rule_(std::move(rule)), before_(std::move(before)), b_(to_) {
    now_.assign(from.tensors.size(), -1);
  }

  /// For a rule that needs the rewriter itself.
  void set_rule(Rule rule) { rule_ = std::move(rule); }
  /// By tensor of the old graph, the tensor of the new one; -1: not there yet, or left out.
  const std::vector<TensorId>& now() const { return now_; }

  Graph run() {
    to_.name = from_.name;
    copy_given();
    for (size_t index = 0; index < from_.segments.size(); ++index) {
      const Segment& segment = from_.segments[index];
      b_.set_role(Role::kNone);
      if (before_ && index > 0) before_(b_, static_cast<int32_t>(index), now_);
      b_.begin_segment(segment, segment.repeat);
      if (segment.reverses) b_.reverses(*segment.reverses);
      for (int32_t i = 0; i < segment.node_count; ++i)
        rewrite(from_.nodes[static_cast<size_t>(segment.first_node + i)]);
      for (const Carry& carry : segment.carries) b_.carry(now(carry.initial), now(carry.next));
    }
    for (TensorId id : from_.outputs) to_.outputs.push_back(now(id));
    for (TensorId id : from_.losses) to_.losses.push_back(now(id));
    return std::move(to_);
  }

 private:
  TensorId now(TensorId id) const { return now_[static_cast<size_t>(id)]; }

  /// Copies tensors that no node computes: inputs, weights, buffers.
  void copy_given() {
    const std::vector<bool> made = made_tensors(from_);
    for (size_t id = 0; id < made.size(); ++id) {
      if (made[id]) continue;
      Tensor tensor = from_.tensors[id];
      tensor.storage = tensor.storage == static_cast<TensorId>(id) ? -1 : now(tensor.storage);
      now_[id] = b_.tensor(std::move(tensor));
    }
  }

  void rewrite(const Node& node) {
    std::vector<TensorId> inputs;
    for (TensorId id : node.inputs) inputs.push_back(now(id));
    b_.set_phase(node.phase);
    b_.set_counts(node.counts);
    b_.set_attention_core(node.attention_core);
    b_.set_recomputed(node.recomputed);
    b_.set_role(node.role);
    const std::vector<TensorId> outputs = rule_(b_, node, std::move(inputs));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      now_[static_cast<size_t>(node.outputs[i])] = outputs[i];
      if (outputs[i] < 0) continue;  // left out
      to_.tensor(outputs[i]).held = from_.tensor(node.outputs[i]).held;
    }
  }

  const Graph& from_;
  Rule rule_;
  Before before_;
  Graph to_;
  GraphBuilder b_;
  std::vector<TensorId> now_;
};

}  // namespace tilecast
