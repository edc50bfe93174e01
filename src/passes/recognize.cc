#include "passes/recognize.h"

#include <algorithm>
#include <unordered_map>

#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tilecast {

Pattern::Pattern(const Graph& graph)
    : graph_(graph), makers_(graph.tensors.size(), -1), readers_(graph.tensors.size()) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    marks_attention_ = marks_attention_ || node.attention_core;
    for (const TensorId id : node.outputs)
      makers_[static_cast<size_t>(id)] = static_cast<int32_t>(n);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto first = node.inputs.begin(), at = first + static_cast<std::ptrdiff_t>(i);
      if (std::find(first, at, *at) == at)
        readers_[static_cast<size_t>(*at)].push_back(static_cast<int32_t>(n));
    }
  }
  // A result of the graph is read once more.
  for (const TensorId id : graph.outputs) readers_[static_cast<size_t>(id)].push_back(-1);
}

bool Pattern::is(const Node& node, std::string_view op) const { return op_def(node.op).name == op; }

const Node* Pattern::made(TensorId id, std::string_view op) const {
  if (id < 0) return nullptr;
  const int32_t maker = makers_[static_cast<size_t>(id)];
  if (maker < 0) return nullptr;
  const Node& node = graph_.nodes[static_cast<size_t>(maker)];
  return op.empty() || is(node, op) ? &node : nullptr;
}

const Node* Pattern::only_reader(TensorId id, std::string_view op) const {
  const std::vector<int32_t>& readers = readers_[static_cast<size_t>(id)];
  if (readers.size() != 1 || readers[0] < 0) return nullptr;
  const Node& node = graph_.nodes[static_cast<size_t>(readers[0])];
  return op.empty() || is(node, op) ? &node : nullptr;
}

TensorId Pattern::other(const Node& node, TensorId input) {
  if (node.inputs.size() != 2) return -1;
  return node.inputs[0] == input ? node.inputs[1] : node.inputs[0];
}

bool Pattern::is_vector(TensorId id, int64_t length) const {
  if (id < 0) return false;
  const Tensor& t = graph_.tensor(id);
  const bool stored = t.kind == TensorKind::kWeight || t.kind == TensorKind::kBuffer;
  return stored && t.shape == Shape{length};
}

TensorId Pattern::before_copies(TensorId id) const {
  while (const Node* copy = made(id, "copy")) id = copy->inputs[0];
  return id;
}

TensorId Pattern::before_casts(TensorId id) const {
  while (const Node* cast = made(id, "cast")) id = cast->inputs[0];
  return id;
}

namespace {

/// Nodes that an output depends on, with the replacements in place.
std::vector<bool> live_nodes(const Pattern& p,
                             const std::unordered_map<const Node*, Replacement>& replacements) {
  const Graph& graph = p.graph();
  std::vector<bool> needed(graph.tensors.size(), false), live(graph.nodes.size(), false);
  for (const auto* ids : {&graph.outputs, &graph.losses}) {
    for (const TensorId id : *ids) needed[static_cast<size_t>(id)] = true;
  }
  for (const Segment& segment : graph.segments) {
    for (const Carry& carry : segment.carries)
      needed[static_cast<size_t>(carry.initial)] = needed[static_cast<size_t>(carry.next)] = true;
  }
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    live[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](TensorId id) { return needed[static_cast<size_t>(id)]; });
    if (!live[n]) continue;
    const auto found = replacements.find(&node);
    for (const TensorId id : found == replacements.end() ? node.inputs : found->second.inputs)
      needed[static_cast<size_t>(id)] = true;
  }
  return live;
}

/// The new outputs in place of the node's; those beyond are not needed.
std::vector<TensorId> replace(GraphBuilder& b, const Node& node, const Replacement& r,
                              const std::vector<TensorId>& now) {
  std::vector<TensorId> inputs;
  for (const TensorId id : r.inputs) inputs.push_back(now[static_cast<size_t>(id)]);
  std::vector<TensorId> outputs = r.build != nullptr
                                      ? r.build(b, r, std::move(inputs))
                                      : b.add(r.op, std::move(inputs), r.name, r.attributes);
  outputs.resize(node.outputs.size(), -1);
  return outputs;
}

/// One round: all places where one of the rules applies.
Graph round(const Graph& graph, std::initializer_list<RecognizeRule> rules) {
  const Pattern pattern(graph);
  std::unordered_map<const Node*, Replacement> replacements;
  for (const Node& node : graph.nodes) {
    for (const RecognizeRule rule : rules) {
      std::optional<Replacement> found = rule(pattern, node);
      if (!found) continue;
      const Node* last = found->last;
      replacements.emplace(last, std::move(*found));
      break;
    }
  }
  const std::vector<bool> live = live_nodes(pattern, replacements);
  Rewriter rewriter(graph, nullptr);
  rewriter.set_rule([&](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
    if (!live[static_cast<size_t>(&node - graph.nodes.data())])
      return std::vector<TensorId>(node.outputs.size(), -1);
    const auto found = replacements.find(&node);
    if (found != replacements.end()) return replace(b, node, found->second, rewriter.now());
    return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
  });
  return rewriter.run();
}

}  // namespace

Graph recognize(const Graph& graph, const EagerForm& form) {
  // Scores and their scale are matched after the softmax, norms and biases are known.
  Graph result = round(graph, {recognize_quantized_linear, recognize_quantized_convolution});
  result = round(result, {recognize_bias, recognize_softmax, recognize_layer_norm,
                          recognize_group_norm, recognize_rms_norm, recognize_gelu,
                          recognize_gelu_by_tanh, recognize_gated_function});
  if (form.fused_attention) result = round(result, {recognize_attention});
  validate_if_debug(result);
  return result;
}

}  // namespace tilecast
