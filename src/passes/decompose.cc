#include <algorithm>
#include <utility>

#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/forget_variables.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tilecast {
namespace {

/// Builds the new graph from the parts of the old one. Nodes that PyTorch launches as they are get
/// moved: copying them would cost as much as building them again.
class Decomposer {
 public:
  Decomposer(Graph from, const EagerForm& form)
      : from_(std::move(from)), form_(form), b_(to_), now_(from_.tensors.size(), -1) {}

  Graph run() {
    to_.name = std::move(from_.name);
    to_.tensors.reserve(2 * from_.tensors.size());
    to_.nodes.reserve(2 * from_.nodes.size());
    const std::vector<bool> made = made_tensors(from_);
    for (size_t id = 0; id < made.size(); ++id) {
      if (!made[id]) move_tensor(static_cast<TensorId>(id));
    }
    for (Segment& segment : from_.segments) {
      b_.begin_segment(segment, segment.repeat);
      for (int32_t i = 0; i < segment.node_count; ++i)
        rewrite(from_.nodes[static_cast<size_t>(segment.first_node + i)]);
      for (const Carry& carry : segment.carries) b_.carry(now(carry.initial), now(carry.next));
    }
    for (const TensorId id : from_.outputs) to_.outputs.push_back(now(id));
    return std::move(to_);
  }

 private:
  TensorId now(TensorId id) const { return id < 0 ? -1 : now_[static_cast<size_t>(id)]; }

  TensorId move_tensor(TensorId id) {
    Tensor tensor = std::move(from_.tensor(id));
    // A view shares the memory of the tensor that replaces its base.
    tensor.storage = tensor.storage == id ? -1 : to_.tensor(now(tensor.storage)).storage;
    return now_[static_cast<size_t>(id)] = b_.tensor(std::move(tensor));
  }

  /// Variables of the models' Python code hold the embeddings, and within a sublayer its norm and
  /// attention's operands.
  void hold(TensorId id) {
    if (id >= 0) to_.tensor(to_.tensor(id).storage).held = Held::kLayer;
  }

  void rewrite(Node& node) {
    for (TensorId& id : node.inputs) id = now(id);
    if (node.op == sdpa_) {
      for (size_t i = 0; i < 3; ++i) hold(node.inputs[i]);
    }
    // Norms of heads, [b, s, heads, size], are overwritten by what is made of them.
    constexpr size_t kHidden = 3;
    const bool is_norm = node.op == layer_norm_ || node.op == rms_norm_;
    const bool named = (is_norm && to_.tensor(node.inputs[0]).shape.size() <= kHidden) ||
                       (node.op == embedding_ && attribute<int64_t>(node, "inner") == 0);
    if (const Decompose rule = op_def(node.op).decompose) {
      b_.set_counts(node.counts);
      const RoleScope role(b_, node.role);
      const std::vector<TensorId> outputs = rule(b_, node, form_);
      b_.set_counts(Counts::kAll);
      for (size_t i = 0; i < node.outputs.size(); ++i)
        now_[static_cast<size_t>(node.outputs[i])] = outputs[i];
      if (named) hold(outputs[0]);
      return;
    }
    for (TensorId& id : node.outputs) id = move_tensor(id);
    if (named) hold(node.outputs[0]);
    to_.segments.back().node_count += 1;
    to_.nodes.push_back(std::move(node));
  }

  const OpId sdpa_ = require_op("sdpa"), embedding_ = require_op("embedding");
  const OpId layer_norm_ = require_op("layer_norm"), rms_norm_ = require_op("rms_norm");
  Graph from_;
  const EagerForm& form_;
  Graph to_;
  GraphBuilder b_;
  std::vector<TensorId> now_;
};

}  // namespace

Graph decompose(Graph graph, const EagerForm& form) {
  Graph result = Decomposer(std::move(graph), form).run();
  validate_if_debug(result);
  return result;
}

void forget_variables(Graph& graph) {
  const OpId keep = require_op("keep");
  const bool holds = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                 [&](const Node& node) { return node.op == keep; });
  if (!holds) return;
  graph = Rewriter(graph, [keep](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
            if (node.op == keep) return std::vector<TensorId>{inputs[0]};
            return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
          }).run();
}

}  // namespace tilecast
