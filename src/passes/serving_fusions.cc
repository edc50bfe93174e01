#include "passes/serving_fusions.h"

#include <algorithm>

#include "base/check.h"
#include "ops/decompose.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

class FusionFinder {
 public:
  explicit FusionFinder(const Graph& graph) : g_(graph) {
    p_.producer.assign(graph.tensors.size(), -1);
    p_.deferred.assign(graph.tensors.size(), false);
    p_.member.assign(graph.nodes.size(), -1);
    p_.first.assign(graph.nodes.size(), -1);
    p_.gates.assign(graph.nodes.size(), -1);
    p_.absorbed.assign(graph.nodes.size(), false);
  }

  ModuleFusions run(bool has_output_layer) {
    std::vector<bool> read(g_.tensors.size(), false);
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const Node& node = g_.nodes[i];
      for (const TensorId id : node.outputs) p_.producer[at(id)] = static_cast<int32_t>(i);
      for (const TensorId id : node.inputs) read[at(id)] = true;
      const std::string_view op = op_def(node.op).name;
      if (op == "sdpa") merge_projections(node);
      if (op == "latent_attention") merge_latent(node);
      if (op == "mul") merge_gate(static_cast<int32_t>(i));
      if (op == "rms_norm" || op == "layer_norm") defer(node.inputs[0]);
    }
    for (const Segment& segment : g_.segments) {
      for (const Carry& carry : segment.carries) defer(carry.next);
    }
    if (has_output_layer) find_output_layer();
    find_unread(read);
    return std::move(p_);
  }

 private:
  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  std::string_view op_of(int32_t node) const {
    return node < 0 ? std::string_view() : op_def(g_.nodes[at(node)].op).name;
  }
  int32_t maker(TensorId id) const { return p_.producer[at(id)]; }
  int32_t maker_of_input(int32_t node) const { return maker(g_.nodes[at(node)].inputs[0]); }
  TensorId input_of(int32_t node) const { return g_.nodes[at(node)].inputs[0]; }

  /// The linear layer that computes queries, keys or values; -1 if they are parts of a fused one.
  /// The scaling of queries is part of the attention kernel.
  int32_t projection(TensorId id) {
    int32_t node = maker(id);
    for (;; node = maker_of_input(node)) {
      const std::string_view op = op_of(node);
      if (op == "mul_scalar") p_.absorbed[at(node)] = true;
      if (op != "split_heads" && op != "apply_rotary" && op != "rms_norm" && op != "view" &&
          op != "mul_scalar" && op != "dropout" && op != "slice_columns")
        return op == "linear" ? node : -1;
    }
  }

  void merge(std::string name, Role weight, std::vector<int32_t> linears, int32_t first,
             bool sliced) {
    const auto index = static_cast<int32_t>(p_.merges.size());
    for (const int32_t linear : linears) p_.member[at(linear)] = index;
    p_.first[at(first)] = index;
    p_.merges.push_back({std::move(name), weight, std::move(linears), sliced});
  }

  void merge_projections(const Node& node) {
    const int32_t q = projection(node.inputs[0]), k = projection(node.inputs[1]),
                  v = projection(node.inputs[2]);
    if (q < 0 || k < 0 || v < 0 || input_of(q) != input_of(k) || input_of(k) != input_of(v)) return;
    if (q == k) return;  // they are parts of one product already
    merge(name_prefix(node.name) + "qkv_proj", Role::kQkv,
          k == v ? std::vector<int32_t>{q, k} : std::vector<int32_t>{q, k, v}, q, true);
  }

  /// The projections to both latent vectors become one product.
  void merge_latent(const Node& node) {
    const int32_t kv_a = maker(node.inputs[2]), q_b = projection(node.inputs[0]);
    if (op_of(kv_a) != "linear" || q_b < 0) return;
    const std::string name = name_prefix(node.name) + "qkv_a_proj";
    const int32_t norm = maker_of_input(q_b);
    const int32_t q_a = op_of(norm) == "rms_norm" ? maker_of_input(norm) : -1;
    if (op_of(q_a) == "linear" && input_of(q_a) == input_of(kv_a)) {
      merge(name, Role::kLatents, {q_a, kv_a}, q_a, true);
    } else {
      merge(name, Role::kLatents, {kv_a}, std::min(q_b, kv_a), true);
    }
  }

  /// Finds act(gate) · up, with gate and up from linear layers of the same input or parts of one.
  void merge_gate(int32_t product) {
    const Node& node = g_.nodes[at(product)];
    const int32_t act = maker(node.inputs[0]), up = maker(node.inputs[1]);
    if (act < 0 || up < 0) return;
    const OpDef& function = op_def(g_.nodes[at(act)].op);
    if (!function.pointwise_flops || function.max_inputs != 1) return;
    const int32_t gate = maker_of_input(act);
    if (gate < 0 || op_of(gate) != op_of(up) || input_of(gate) != input_of(up)) return;
    if (op_of(gate) == "linear") {
      merge(name_prefix(node.name) + "gate_up_proj", Role::kGateUp, {gate, up}, gate, false);
    } else if (op_of(gate) == "slice_columns") {
      p_.absorbed[at(gate)] = p_.absorbed[at(up)] = true;
    } else {
      return;
    }
    p_.absorbed[at(act)] = true;
    p_.gates[at(product)] = act;
  }

  void defer(TensorId id) {
    const int32_t node = maker(id);
    if (op_of(node) != "add") return;
    const std::vector<TensorId>& inputs = g_.nodes[at(node)].inputs;
    p_.deferred[at(id)] = g_.tensor(inputs[0]).shape == g_.tensor(inputs[1]).shape;
  }

  /// Follows pointwise operators on the logits back to the output layer.
  void find_output_layer() {
    int32_t node = maker(g_.outputs.front());
    const auto on_logits = [&] {
      return op_of(node) == "all_reduce" || op_of(node) == "all_gather" ||
             (node >= 0 && op_def(g_.nodes[at(node)].op).pointwise_flops.has_value());
    };
    while (on_logits()) node = maker_of_input(node);
    TILECAST_CHECK(op_of(node) == "linear") << "'" << g_.name << "' has no output layer to serve";
    p_.output_layer = node;
  }

  void find_unread(const std::vector<bool>& read) {
    p_.unread.resize(g_.segments.size());
    for (size_t id = 0; id < read.size(); ++id) {
      const Tensor& tensor = g_.tensors[id];
      if (tensor.kind == TensorKind::kWeight && tensor.segment >= 0 && !read[id])
        p_.unread[at(tensor.segment)].push_back(static_cast<TensorId>(id));
    }
  }

  const Graph& g_;
  ModuleFusions p_;
};

}  // namespace

ModuleFusions find_fusions(const Graph& modules, bool has_output_layer) {
  return FusionFinder(modules).run(has_output_layer);
}

}  // namespace tilecast
