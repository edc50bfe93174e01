#include "passes/rematerialize.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "ops/op_def.h"
#include "ops/validate.h"

namespace tilecast {
namespace {

/// More than any tensor has, but no overflow in a sum of two.
constexpr int64_t kNever = int64_t{1} << 60;

class Rematerializer {
 public:
  Rematerializer(Graph& graph, const Graph& unfused)
      : graph_(graph),
        unfused_(unfused),
        maker_(graph.tensors.size(), -1),
        kernel_(graph.tensors.size(), -1),
        segment_(unfused.nodes.size(), -1),
        kept_(graph.tensors.size(), false),
        fixed_(graph.tensors.size(), false),
        readers_(graph.tensors.size()) {
    for (size_t s = 0; s < unfused.segments.size(); ++s) {
      const Segment& segment = unfused.segments[s];
      for (int32_t i = 0; i < segment.node_count; ++i)
        segment_[static_cast<size_t>(segment.first_node + i)] = static_cast<int32_t>(s);
      for (const Carry& carry : segment.carries) fix(carry.initial), fix(carry.next);
    }
    for (const TensorId id : graph.outputs) fix(id);
    for (const TensorId id : graph.losses) fix(id);
    for (size_t id = 0; id < graph.tensors.size(); ++id) {
      // The memory of a view's base is needed where the view is.
      const Tensor& tensor = graph.tensors[id];
      if (tensor.storage != static_cast<TensorId>(id)) fix(tensor.storage);
      kept_[id] = tensor.kind == TensorKind::kWeight || tensor.kind == TensorKind::kBuffer;
    }
    for (size_t i = 0; i < unfused.nodes.size(); ++i) {
      for (const TensorId id : unfused.nodes[i].outputs)
        maker_[index(id)] = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (const TensorId id : node.outputs) kernel_[index(id)] = static_cast<int32_t>(i);
      for (const TensorId id : node.inputs) {
        readers_[index(id)].push_back(static_cast<int32_t>(i));
        if (node.phase == Phase::kBackward) kept_[index(id)] = true;
      }
    }
  }

  void run() {
    for (const Node& node : unfused_.nodes) {
      if (node.phase != Phase::kForward) continue;
      for (const TensorId id : node.outputs) consider(id);
    }
  }

 private:
  static size_t index(TensorId id) { return static_cast<size_t>(id); }
  void fix(TensorId id) {
    if (id >= 0) fixed_[index(id)] = true;
  }

  /// Tensors from which a kernel computes another one on the way.
  struct Source {
    std::set<TensorId> leaves;
    int64_t bytes = 0;  ///< that would not be kept otherwise
    int64_t flops = 0;  ///< for each element
  };

  bool is_fused(const Node& node) const {
    return node.op == fused_pointwise_ || node.op == fused_softmax_ || node.op == fused_norm_;
  }
  /// Whether a pointwise chain can become a part of this kernel.
  bool can_absorb(const Node& node) const {
    const OpDef& op = op_def(node.op);
    return node.phase == Phase::kBackward && node.counts == Counts::kAll &&
           (is_fused(node) || op.pointwise_flops || op.row_fusion);
  }

  /// The node that makes a tensor, if a later kernel can compute it again; nullptr if not. What a
  /// repetition gets from the one before is not made in it.
  const Node* pointwise_maker(TensorId id) const {
    const int32_t maker = maker_[index(id)];
    if (maker < 0 || fixed_[index(id)]) return nullptr;
    const Node& node = unfused_.nodes[static_cast<size_t>(maker)];
    // Dropout would draw other numbers.
    const bool again = node.phase == Phase::kForward && node.counts == Counts::kAll &&
                       op_def(node.op).pointwise_flops && node.op != dropout_;
    return again ? &node : nullptr;
  }

  /// The tensors that a tensor is made of, as far as its segment goes.
  Source made_of(TensorId id, int depth) const {
    Source source;
    const auto maker = static_cast<size_t>(maker_[index(id)]);
    const Node& node = unfused_.nodes[maker];
    source.flops = op_def(node.op).pointwise_flops.value_or(0);
    for (const TensorId input : node.inputs) {
      const Source part = source_of(input, segment_[maker], depth + 1);
      source.leaves.insert(part.leaves.begin(), part.leaves.end());
      source.bytes = std::min(kNever, source.bytes + part.bytes);
      source.flops += part.flops;
    }
    return source;
  }

  Source source_of(TensorId id, int32_t segment, int depth) const {
    constexpr int kDeepest = 8;
    if (kept_[index(id)]) return {.leaves = {id}};
    // Tensors inside a fused kernel are not written.
    const bool written = maker_[index(id)] < 0 || kernel_[index(id)] >= 0;
    Source alone{.leaves = {id}, .bytes = written ? tensor_bytes(graph_.tensor(id)) : kNever};
    const bool here = pointwise_maker(id) != nullptr &&
                      segment_[static_cast<size_t>(maker_[index(id)])] == segment;
    if (!here || depth > kDeepest) return alone;
    Source made = made_of(id, depth);
    return made.bytes < alone.bytes ? made : alone;
  }

  void consider(TensorId id) {
    if (!kept_[index(id)] || pointwise_maker(id) == nullptr) return;
    std::vector<int32_t> absorbing;
    for (const int32_t reader : readers_[index(id)]) {
      const Node& node = graph_.nodes[static_cast<size_t>(reader)];
      if (node.phase == Phase::kForward) continue;
      // A kernel over other elements would compute them several times.
      const bool same = graph_.tensor(node.outputs[0]).shape == graph_.tensor(id).shape;
      if (!can_absorb(node) || !same) return;
      absorbing.push_back(reader);
    }
    const Source source = made_of(id, 0);
    if (absorbing.empty() || source.bytes >= tensor_bytes(graph_.tensor(id))) return;
    for (const int32_t reader : absorbing) absorb(static_cast<size_t>(reader), id, source);
    kept_[index(id)] = false;
    for (const TensorId leaf : source.leaves) kept_[index(leaf)] = true;
    drop(id);
  }

  /// The kernel reads the sources instead of the tensor.
  void absorb(size_t reader, TensorId id, const Source& source) {
    Node& node = graph_.nodes[reader];
    const OpDef& op = op_def(node.op);
    int64_t flops = source.flops;
    if (is_fused(node)) {
      flops += attribute<int64_t>(node, "flops_per_element");
    } else if (op.row_fusion) {
      flops += op.row_fusion->flops_per_element;
      node.op = require_op(op.row_fusion->fused);
    } else {
      flops += op.pointwise_flops.value_or(0);
      node.op = fused_pointwise_;
    }
    node.attributes = {{"flops_per_element", flops}};
    std::erase(node.inputs, id);
    std::erase(readers_[index(id)], static_cast<int32_t>(reader));
    for (const TensorId leaf : source.leaves) {
      if (std::find(node.inputs.begin(), node.inputs.end(), leaf) != node.inputs.end()) continue;
      node.inputs.push_back(leaf);
      readers_[index(leaf)].push_back(static_cast<int32_t>(reader));
    }
  }

  /// A fused kernel of the forward pass does not write what nobody reads.
  void drop(TensorId id) {
    if (kernel_[index(id)] < 0) return;
    Node& node = graph_.nodes[static_cast<size_t>(kernel_[index(id)])];
    if (!readers_[index(id)].empty() || node.outputs.size() == 1) return;
    std::erase(node.outputs, id);
    kernel_[index(id)] = -1;
  }

  Graph& graph_;
  const Graph& unfused_;
  std::vector<int32_t> maker_, kernel_;  ///< of tensors: nodes of `unfused_` and of `graph_`
  std::vector<int32_t> segment_;         ///< of nodes of `unfused_`
  std::vector<bool> kept_;               ///< in memory until the backward pass
  std::vector<bool> fixed_;              ///< carried, returned, or the base of a view
  std::vector<std::vector<int32_t>> readers_;
  const OpId fused_pointwise_ = require_op("fused_pointwise"),
             fused_softmax_ = require_op("fused_softmax"),
             fused_norm_ = require_op("fused_layer_norm"), dropout_ = require_op("dropout");
};

}  // namespace

void rematerialize_pointwise(Graph& graph, const Graph& unfused) {
  Rematerializer(graph, unfused).run();
  validate_if_debug(graph);
}

}  // namespace tilecast
