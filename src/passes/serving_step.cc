#include "passes/serving_step.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/stage.h"

namespace tilecast {

ServingStep::Rule ServingStep::rule_of(OpId op) {
  struct Entry {
    std::string_view op;
    Rule rule;
  };
  static const Entry kEntries[] = {{"causal_mask", &ServingStep::leave_out},
                                   {"rotary_table", &ServingStep::leave_out},
                                   {"dropout", &ServingStep::pass_on},
                                   {"apply_rotary", &ServingStep::pass_on},
                                   {"split_heads", &ServingStep::split_heads},
                                   {"view", &ServingStep::view_heads},
                                   {"mul", &ServingStep::multiply},
                                   {"rms_norm", &ServingStep::norm},
                                   {"layer_norm", &ServingStep::norm},
                                   {"add", &ServingStep::add},
                                   {"linear", &ServingStep::linear},
                                   {"all_gather", &ServingStep::gather},
                                   {"experts", &ServingStep::experts},
                                   {"sdpa", &ServingStep::attention},
                                   {"linear_scan", &ServingStep::scan},
                                   {"indexer", &ServingStep::indexer},
                                   {"compressed_attention", &ServingStep::compressed_attention},
                                   {"causal_conv1d", &ServingStep::convolution},
                                   {"latent_attention", &ServingStep::latent_attention}};
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all(op_table().size(), &ServingStep::same);
    for (const Entry& entry : kEntries) all[static_cast<size_t>(require_op(entry.op))] = entry.rule;
    return all;
  }();
  return rules[static_cast<size_t>(op)];
}

ServingStep::ServingStep(const Graph& from, const StepRequest& request)
    : from_(from),
      request_(request),
      fusions_(find_fusions(from, request.has_output_layer)),
      b_(to_),
      values_(from.tensors.size()),
      products_(fusions_.merges.size(), -1) {
  for (const StepRequest::Group& group : request.groups) {
    tokens_ = checked_add(tokens_, checked_multiply(group.sequences, group.tokens));
    sequences_ = checked_add(sequences_, group.sequences);
  }
}

Graph ServingStep::run() {
  to_.name = from_.name;
  for (const Segment& segment : from_.segments) {
    begin(segment);
    std::vector<Value> starts;
    for (const Carry& carry : segment.carries) starts.push_back(value(carry.initial));
    for (int32_t i = 0; i < segment.node_count; ++i) take(segment.first_node + i);
    for (size_t i = 0; i < starts.size(); ++i) {
      const Value& next = value(segment.carries[i].next);
      b_.carry(starts[i].id, next.id);
      if (next.added >= 0) b_.carry(starts[i].added, next.added);
    }
  }
  if (request_.has_output_layer) {
    const RoleScope role(b_, Role::kOutput);
    to_.outputs = {op("sample", {get(from_.outputs.front())}, "sample")};
    return std::move(to_);
  }
  // The next stage gets the sum that its first norm computes as two tensors.
  for (const TensorId id : from_.outputs) {
    const Value v = value(id);
    to_.outputs.push_back(v.id);
    if (v.added >= 0) to_.outputs.push_back(v.added);
  }
  return std::move(to_);
}

void ServingStep::begin(const Segment& segment) {
  b_.set_role(Role::kNone);
  for (const Carry& carry : segment.carries) {
    Value& start = value(carry.initial);
    if (!fusions_.deferred[static_cast<size_t>(carry.next)]) {
      get(carry.initial);
    } else if (start.added < 0) {
      // The residual sum is part of the next norm. The first layer has nothing to add, but is
      // modelled like the others.
      const Tensor& x = to_.tensor(get(carry.initial));
      start.added = b_.tensor(
          {.name = "nothing", .shape = x.shape, .dtype = x.dtype, .kind = TensorKind::kReference});
    }
  }
  b_.begin_segment(segment, segment.repeat);
  // Weights without a kernel of their own (biases of experts) count as weights too.
  const auto index = static_cast<size_t>(&segment - from_.segments.data());
  for (const TensorId id : fusions_.unread[index]) given(id);
}

void ServingStep::take(int32_t node) {
  b_.set_role(node_at(node).role);
  if (const int32_t merge = fusions_.first[static_cast<size_t>(node)]; merge >= 0) {
    const Merge& m = fusions_.merges[static_cast<size_t>(merge)];
    products_[static_cast<size_t>(merge)] = product(m.name, m.weight, m.linears);
  }
  if (fusions_.absorbed[static_cast<size_t>(node)]) return pass_on(node);
  (this->*rule_of(node_at(node).op))(node);
}

TensorId ServingStep::given(TensorId module) {
  Tensor tensor = from_.tensor(module);
  if (tensor.kind == TensorKind::kInput) {
    const Shape shape = is_received(tensor) ? Shape{tokens_, tensor.shape.back()} : Shape{tokens_};
    const TensorId input = b_.input(tensor.name, shape, tensor.dtype);
    to_.tensor(input).role = tensor.role;
    set(module, input);
  } else {
    tensor.storage = -1;
    if (tensor.segment >= 0) tensor.segment = b_.current_segment();
    set(module, b_.tensor(std::move(tensor)));
  }
  return value(module).id;
}

TensorId ServingStep::get(TensorId module) {
  const Value v = value(module);
  if (v.id < 0) return given(module);
  if (v.added >= 0) {
    const RoleScope role(b_, node_at(fusions_.producer[static_cast<size_t>(module)]).role);
    set(module, op("add", {v.id, v.added}, from_.tensor(module).name));
  }
  return value(module).id;
}

void ServingStep::same(int32_t index) {
  const Node& node = node_at(index);
  std::vector<TensorId> inputs;
  for (const TensorId id : node.inputs) inputs.push_back(get(id));
  const std::vector<TensorId> outputs =
      b_.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
  for (size_t i = 0; i < outputs.size(); ++i) set(node.outputs[i], outputs[i]);
}

void ServingStep::pass_on(int32_t index) {
  const Node& node = node_at(index);
  value(node.outputs[0]) = value(node.inputs[0]);
}

/// The heads of a token are adjacent in memory.
void ServingStep::split_heads(int32_t index) {
  const Node& node = node_at(index);
  const Shape& s = module_shape(node.outputs[0]);
  const TensorId x = get(node.inputs[0]);
  set(node.outputs[0],
      module_shape(node.inputs[0]).size() == 4 ? view(x, {tokens_, s[1] * s[3]}) : x);
}

/// [b, s, …] in another shape of the same tokens, e.g. [b, s, heads, size] for a norm of each head.
void ServingStep::view_heads(int32_t index) {
  const Node& node = node_at(index);
  const Shape& s = module_shape(node.outputs[0]);
  Shape shape = {tokens_};
  shape.insert(shape.end(), s.begin() + 2, s.end());
  set(node.outputs[0], view(get(node.inputs[0]), std::move(shape)));
}

void ServingStep::multiply(int32_t index) {
  const int32_t gate = fusions_.gates[static_cast<size_t>(index)];
  if (gate < 0) return same(index);
  const Node& node = node_at(index);
  const Node& act = node_at(gate);
  const int32_t source = fusions_.producer[static_cast<size_t>(act.inputs[0])];
  const int32_t merge = fusions_.member[static_cast<size_t>(source)];
  const TensorId both =
      merge < 0 ? get(node_at(source).inputs[0]) : products_[static_cast<size_t>(merge)];
  const int64_t flops = op_def(act.op).pointwise_flops.value_or(0) + 1;
  const char* name =
      request_.fusions.compiles_gates ? "compiled_gated_activation" : "gated_activation";
  set(node.outputs[0], op(name, {both}, act.name, {{"flops_per_element", flops}}));
}

void ServingStep::add(int32_t index) {
  const Node& node = node_at(index);
  if (!fusions_.deferred[static_cast<size_t>(node.outputs[0])]) return same(index);
  const TensorId x = get(node.inputs[0]);
  value(node.outputs[0]) = {x, get(node.inputs[1])};
}

void ServingStep::norm(int32_t index) {
  const Node& node = node_at(index);
  const TensorId source = node.inputs[0];
  const bool rms = op_def(node.op).name == "rms_norm";
  if (const Value sum = value(source); !rms && sum.added >= 0)
    set(source, op("add", {sum.id, sum.added}, node.name + ".add"));
  const Value x = value(source);
  const bool adds = x.added >= 0;
  std::vector<TensorId> inputs = {adds ? x.id : get(source)};
  if (adds) inputs.push_back(x.added);
  for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(get(node.inputs[i]));
  if (node.inputs.size() == 1) {
    const Tensor& input = to_.tensor(inputs[0]);
    inputs.push_back(b_.tensor({.name = node.name + ".one",
                                .shape = {input.shape.back()},
                                .dtype = input.dtype,
                                .kind = TensorKind::kReference}));
  }
  if (!adds) return set(node.outputs[0], op(op_def(node.op).name, std::move(inputs), node.name));
  const std::vector<TensorId> both = b_.add("add_rms_norm", std::move(inputs), node.name);
  set(node.outputs[0], both[0]);
  set(source, both[1]);
}

TensorId ServingStep::linear_of(std::vector<TensorId> inputs, QuantScheme scheme,
                                const std::string& name, bool adapted) {
  if (scheme == QuantScheme::kNone) return op("linear", std::move(inputs), name);
  std::vector<Attribute> attributes = {{"scheme", scheme}};
  if (!adapted && is_quantized_before(inputs.front(), scheme))
    attributes.push_back({"quantized_input", 1});
  return op("quantized_linear", std::move(inputs), name, std::move(attributes));
}

/// Whether the kernel that writes the activations quantizes them too: to FP8 with a scale for the
/// tensor or for each row, which the kernel has at hand, and to FP4. Blocks of FP8 have kernels of
/// their own.
bool ServingStep::is_quantized_before(TensorId x, QuantScheme scheme) const {
  const StepFusions& fusions = request_.fusions;
  if (scheme != QuantScheme::kFp8 && !(scheme == QuantScheme::kFp4 && fusions.to_fp4)) return false;
  const std::string_view op = writer_of(x);
  if (op == "rms_norm" || op == "add_rms_norm") return fusions.norms_quantize;
  if (op.ends_with("gated_activation")) return fusions.gates_quantize;
  return op.ends_with("attention") && fusions.attention_quantizes;
}

/// The operator that writes the tensor, behind views and parts of a buffer.
std::string_view ServingStep::writer_of(TensorId id) const {
  for (auto node = to_.nodes.rbegin(); node != to_.nodes.rend(); ++node) {
    if (std::find(node->outputs.begin(), node->outputs.end(), id) == node->outputs.end()) continue;
    const std::string_view op = op_def(node->op).name;
    if (op != "view" && op != "join_rows") return op;
    id = node->inputs.back();
  }
  return {};
}

TensorId ServingStep::product(const std::string& name, Role role,
                              const std::vector<int32_t>& linears) {
  const Node& first = node_at(linears[0]);
  const bool is_output = linears[0] == fusions_.output_layer;
  TensorId x = get(first.inputs[0]);
  if (is_output) x = last_tokens(x);
  int64_t out = 0;
  for (const int32_t linear : linears)
    out = checked_add(out, module_shape(node_at(linear).outputs[0]).back());
  const int64_t k = module_shape(first.inputs[0]).back();
  const Tensor& weight = from_.tensor(first.inputs[1]);
  const QuantScheme scheme = is_output ? QuantScheme::kNone : scheme_of(name, role);
  std::vector<TensorId> inputs = {x};
  if (scheme == QuantScheme::kNone && weight.shape == Shape{out, k}) {
    inputs.push_back(get(first.inputs[1]));  // may also be the embedding table
  } else {
    const DType stored =
        scheme == QuantScheme::kNone ? weight.dtype : scheme_info(scheme).weight_dtype;
    inputs.push_back(b_.weight(name + ".weight", {out, k}, stored));
    to_.tensor(inputs.back()).role = role;
  }
  if (scheme != QuantScheme::kNone)
    inputs.push_back(b_.scales(name, scheme, checked_multiply(out, k), b_.current_segment()));
  if (first.inputs.size() > 2) inputs.push_back(b_.weight(name + ".bias", {out}, weight.dtype));
  const std::vector<int32_t> adapted = adapted_layers(linears);
  const TensorId y = linear_of(std::move(inputs), scheme, name, !adapted.empty());
  return adapted.empty() ? y : adapt(y, x, name, adapted);
}

/// The logits of the ranks' shares of the vocabulary.
void ServingStep::gather(int32_t index) {
  const Node& node = node_at(index);
  const TensorId x = get(node.inputs[0]);
  const auto last = static_cast<int64_t>(to_.tensor(x).shape.size()) - 1;
  set(node.outputs[0], op("all_gather", {x}, node.name,
                          {{"ranks", attribute<int64_t>(node, "ranks")}, {"dim", last}}));
}

TensorId ServingStep::last_tokens(TensorId x) {
  if (tokens_ == sequences_) return x;
  return op("gather_rows", {x}, "last_tokens", {{"rows", sequences_}});
}

void ServingStep::linear(int32_t index) {
  const Node& node = node_at(index);
  const int32_t merge = fusions_.member[static_cast<size_t>(index)];
  if (merge < 0)
    return set(node.outputs[0], product(node.name, from_.tensor(node.inputs[1]).role, {index}));
  if (!fusions_.merges[static_cast<size_t>(merge)].sliced) return;
  set(node.outputs[0], slice(products_[static_cast<size_t>(merge)],
                             module_shape(node.outputs[0]).back(), node.name));
}

void ServingStep::experts(int32_t index) {
  const Node& node = node_at(index);
  const QuantScheme scheme = scheme_of(node.name, from_.tensor(node.inputs[1]).role);
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < 3; ++i) inputs.push_back(get(node.inputs[i]));
  Node fused = node;
  fused.set_attribute("skew_percent", request_.skew_percent);
  const auto rewrite = op_def(node.op).quantization->rewrite;
  set(node.outputs[0],
      scheme == QuantScheme::kNone
          ? op("experts", std::move(inputs), node.name, std::move(fused.attributes))
          : rewrite(b_, fused, std::move(inputs), scheme).front());
}

Graph fuse(const Graph& modules, const StepRequest& request) {
  Graph result = ServingStep(modules, request).run();
  validate_if_debug(result);
  return result;
}

}  // namespace tilecast
