// A layer of experts as serving software runs it: one fused operator that sorts the tokens by
// expert and multiplies them group by group.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/checked.h"
#include "base/rng.h"
#include "ops/decompose.h"
#include "ops/expert_load.h"
#include "ops/experts_memory.h"
#include "ops/gradient.h"
#include "ops/grouped_experts.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// The router's weights of a layer without quantization; where it is quantized, scales stand there.
std::optional<size_t> router_input(const Node& node) {
  constexpr size_t kRouter = 3;
  const bool routed =
      node.inputs.size() > kRouter && attribute<QuantScheme>(node, "scheme") == QuantScheme::kNone;
  return routed ? std::optional(kRouter) : std::nullopt;
}

bool frozen_weights(const Graph& graph, const Node& node) {
  return graph.tensor(node.inputs[1]).frozen && graph.tensor(node.inputs[2]).frozen;
}

// experts: x [..., hidden_dim], up [experts of the rank, ffn_dim (gated: 2 ffn_dim), hidden_dim],
// down [experts of the rank, hidden_dim, ffn_dim]; the router's weights [..., num_experts], without
// which it gets no gradient.
void check_shapes(const OpContext& context, const Shape& x, const Shape& up, const Shape& down) {
  if (x.empty() || up.size() != 3 || down.size() != 3 || up[0] != down[0] || up[2] != x.back() ||
      down[1] != x.back() || (up[1] != down[2] && up[1] != checked_multiply(2, down[2])))
    context.fail(
        fmt::format("expected x [..., hidden_dim], up [experts, ffn_dim (gated: 2 ffn_dim), "
                    "hidden_dim] and down [experts, hidden_dim, ffn_dim], found {}, {} and {}",
                    format_shape(x), format_shape(up), format_shape(down)));
}

std::vector<TensorSpec> infer_experts(const OpContext& context) {
  const Tensor& x = context.input(0);
  const Shape& up = context.input(1).shape;
  const Shape& down = context.input(2).shape;
  check_shapes(context, x.shape, up, down);
  const int64_t ranks = context.integer("ranks");
  const int64_t top_k = context.integer("top_k");
  if (top_k > checked_multiply(up[0], ranks))
    context.fail(fmt::format("a token cannot go to {} of {} experts", top_k, up[0] * ranks));
  if (const auto router = router_input(context.node)) {
    const Shape& weights = context.input(*router).shape;
    if (weights.empty() || weights.back() != checked_multiply(up[0], ranks))
      context.fail(fmt::format("expected the router's weights as [..., {} experts], found {}",
                               checked_multiply(up[0], ranks), format_shape(weights)));
  }
  std::vector<TensorSpec> specs = {
      {.shape = x.shape, .dtype = x.dtype, .stored_bytes = x.stored_bytes}};
  if (context.integer("keeps") != 0) specs.push_back(kept_of_experts(context));
  if (const auto scratch = scratch_of_experts(context)) specs.push_back(*scratch);
  return specs;
}

/// The layer's sizes, and the load of the rank.
Experts sizes_of_layer(const OpContext& context) {
  const Tensor& x = context.input(0);
  const Shape& up = context.input(1).shape;
  const Shape& down = context.input(2).shape;
  Experts sizes;
  sizes.hidden_dim = x.shape.back();
  sizes.tokens = sizes.hidden_dim == 0 ? 0 : element_count(x.shape) / sizes.hidden_dim;
  sizes.ffn_dim = down[2];
  sizes.ranks = context.integer("ranks");
  sizes.num_experts = checked_multiply(up[0], sizes.ranks);
  sizes.top_k = context.integer("top_k");
  sizes.skew_percent = context.integer("skew_percent");
  ExpertLoad load =
      expert_load(sizes.tokens, sizes.top_k, sizes.num_experts, sizes.ranks, sizes.skew_percent);
  if (const int64_t senders = context.integer("senders"); senders > 1) {
    // Rows were sent to the ranks with their experts; this rank gets the most of them.
    const int64_t top_k = context.integer("sent_top_k");
    load = expert_load(checked_multiply(sizes.tokens, senders) / top_k, top_k,
                       checked_multiply(up[0], senders), senders, sizes.skew_percent);
    sizes.tokens = static_cast<int64_t>(std::ceil(load.assignments));
    sizes.skew_percent = 0;
  }
  sizes.active_experts = load.active_experts;
  sizes.assignments = load.assignments;
  return sizes;
}

/// nullopt: the layer is one fused kernel.
std::optional<GroupedExperts> grouped_layer(const OpContext& context) {
  const Tensor& x = context.input(0);
  if (context.integer("grouped") == 0 ||
      context.attribute<QuantScheme>("scheme") != QuantScheme::kNone)
    return std::nullopt;
  const Experts sizes = sizes_of_layer(context);
  return GroupedExperts{.assignments = sizes.assignments,
                        .active_experts = sizes.active_experts,
                        .tokens = sizes.tokens,
                        .hidden_dim = sizes.hidden_dim,
                        .ffn_dim = sizes.ffn_dim,
                        .gated = context.input(1).shape[1] != sizes.ffn_dim,
                        .dtype = x.dtype,
                        .scheme = context.attribute<QuantScheme>("products"),
                        .activation_again = context.integer("activation_again") != 0,
                        .scaled_first = context.integer("scaled_first") != 0,
                        .frozen = context.integer("frozen") != 0,
                        .fused = context.integer("fused_rows") != 0,
                        .sorted_again = context.integer("sorted_again") != 0,
                        .biased = context.integer("biased") != 0,
                        .clamped = context.integer("clamped") != 0,
                        .counts_awaited = sizes.ranks == 1,
                        .own_tokens = sizes.tokens / sizes.ranks / context.integer("tensor_ranks"),
                        .tensor_ranks = context.integer("tensor_ranks")};
}

void work_experts(const OpContext& context, std::vector<Kernel>& kernels) {
  if (const std::optional<GroupedExperts> layer = grouped_layer(context))
    return add_grouped_forward(*layer, kernels);
  const Tensor& x = context.input(0);
  const Shape& up = context.input(1).shape;
  const Shape& down = context.input(2).shape;
  const Experts sizes = sizes_of_layer(context);
  Kernel kernel{.shape = sizes, .dtype = x.dtype};
  kernel.scheme = context.attribute<QuantScheme>("scheme");
  const int64_t per_expert = checked_multiply(checked_add(up[1], down[2]), sizes.hidden_dim);
  const auto weight_bytes =
      static_cast<double>(scheme_bytes(kernel.scheme, per_expert, x.dtype)) * sizes.active_experts;
  const double flops = 2 * static_cast<double>(per_expert) * sizes.assignments;
  constexpr double kLargest = 9e18;
  if (!(flops < kLargest) || !(weight_bytes < kLargest)) context.fail("the work overflows 64 bits");
  kernel.flops = static_cast<int64_t>(flops);
  kernel.read_bytes = checked_add(static_cast<int64_t>(weight_bytes), tensor_bytes(x));
  kernel.write_bytes = tensor_bytes(context.output(0));
  kernels.push_back(kernel);
}

std::vector<TensorId> quantize_experts(GraphBuilder& b, const Node& node,
                                       std::vector<TensorId> inputs, QuantScheme scheme) {
  int64_t elements = 0;
  for (size_t i = 1; i < 3; ++i) {
    Tensor& weight = b.graph().tensor(inputs[i]);
    weight.dtype = scheme_info(scheme).weight_dtype;
    elements = checked_add(elements, element_count(weight.shape));
  }
  const int32_t segment = b.graph().tensor(inputs[1]).segment;
  inputs.resize(3);
  inputs.push_back(b.scales(node.name, scheme, elements, segment));
  Node quantized = node;
  quantized.set_attribute("scheme", scheme);
  std::vector<TensorId> outputs =
      b.add("experts", std::move(inputs), node.name, std::move(quantized.attributes));
  outputs.resize(node.outputs.size(), -1);  // fused kernels take no scratch
  return outputs;
}

void backward_experts(GradientBuilder& g, const Node& node) {
  std::vector<TensorId> backward_operands = {g.dense(g.gradient(node.outputs[0])), node.inputs[0],
                                             node.inputs[1], node.inputs[2]};
  if (attribute<int64_t>(node, "keeps") != 0) backward_operands.push_back(node.outputs[1]);
  std::vector<Attribute> attributes = node.attributes;
  if (const auto router = router_input(node)) {
    backward_operands.push_back(node.inputs[*router]);
    attributes.push_back({"routed", 1});
  }
  // Mixed precision casts frozen weights, so they are asked for here again.
  const bool frozen = !g.requires_grad(node.inputs[1]) && !g.requires_grad(node.inputs[2]);
  std::erase_if(attributes, [](const Attribute& a) { return a.name == "frozen"; });
  if (frozen) attributes.push_back({"frozen", 1});
  const std::vector<TensorId> grads =
      g.add("experts_backward", backward_operands, std::move(attributes));
  std::vector<TensorId> inputs = node.inputs;
  if (frozen) inputs.erase(inputs.begin() + 1, inputs.begin() + 3);
  for (size_t i = 0; i < std::min(grads.size(), inputs.size()); ++i) {
    if (g.requires_grad(inputs[i])) g.add_gradient(inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_experts_backward(const OpContext& context) {
  check_shapes(context, context.input(1).shape, context.input(2).shape, context.input(3).shape);
  std::vector<TensorSpec> specs;
  const size_t end = context.integer("frozen") != 0 ? 2 : 4;
  for (size_t i = 1; i < end; ++i) {
    specs.push_back({.shape = context.input(i).shape, .dtype = context.input(i).dtype});
    if (i == 1) specs.back().stored_bytes = context.input(i).stored_bytes;  // of the tokens
  }
  if (context.integer("routed") != 0) {
    const Tensor& weights = context.input(context.node.inputs.size() - 1);
    specs.push_back({.shape = weights.shape, .dtype = weights.dtype});
  }
  if (const auto scratch = scratch_of_experts_backward(context, specs)) specs.push_back(*scratch);
  return specs;
}

/// Twice the forward pass: once for the gradient of the input, once for the gradients of the
/// weights, which are written completely, if they are not frozen.
void work_experts_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  Node forward = context.node;
  forward.inputs.erase(forward.inputs.begin());
  forward.inputs.resize(3);
  const bool frozen = context.integer("frozen") != 0;
  if (const auto layer = grouped_layer({context.graph, forward})) {
    add_grouped_input_gradient(*layer, kernels);
    if (!frozen) add_grouped_weight_gradient(*layer, context.input(2).shape[0], kernels);
    return;
  }
  if (frozen) return work_experts({context.graph, forward}, kernels);
  std::vector<Kernel> both;
  for (int i = 0; i < 2; ++i) work_experts({context.graph, forward}, both);
  both[1].write_bytes = 0;
  for (size_t i = 1; i < 3; ++i)
    both[1].write_bytes = checked_add(both[1].write_bytes, tensor_bytes(context.output(i)));
  both[1].read_bytes = checked_multiply(2, tensor_bytes(context.input(0)));
  kernels.insert(kernels.end(), both.begin(), both.end());
}

/// PyTorch's kernels of the layer. Training keeps what the backward pass reads.
std::vector<TensorId> decompose_experts(GraphBuilder& b, const Node& node, const EagerForm& form) {
  std::vector<Attribute> attributes = node.attributes;
  attributes.push_back({"grouped", 1});
  if (form.fused_modules) attributes.push_back({"fused_rows", 1});
  if (form.training) attributes.push_back({"keeps", 1});
  if (form.training && form.recomputes_expert_activations)
    attributes.push_back({"activation_again", 1});
  if (form.training && frozen_weights(b.graph(), node)) attributes.push_back({"frozen", 1});
  std::vector<TensorId> outputs = b.add("experts", node.inputs, node.name, std::move(attributes));
  outputs.resize(node.outputs.size());
  return outputs;
}

std::vector<SizeDef> expert_sizes() {
  constexpr int kDrawnTokens = 14;
  constexpr int64_t kMaxSkew = 300;  // an exponent of 3: one expert gets nearly all tokens
  return {{.name = "tokens",
           .doc = "of the batch",
           .other_names = {"m"},
           .drawn_bits = kDrawnTokens,
           .grows = true},
          {.name = "ffn_dim",
           .doc = "FFN dimension of an expert",
           .other_names = {"n", "inner_size"},
           .grows = true},
          {.name = "hidden_dim",
           .doc = "hidden dimension of the layer",
           .other_names = {"k", "hidden_size"},
           .grows = true},
          {.name = "num_experts",
           .doc = "of the layer",
           .other_names = {"experts"},
           .default_value = int64_t{8}},
          {.name = "top_k",
           .doc = "experts per token",
           .other_names = {"chosen"},
           .default_value = int64_t{2}},
          {.name = "ranks", .doc = "that share the experts"},
          {.name = "skew",
           .doc = "100 times the exponent of the power law of the experts' load; 0: uniform",
           .other_names = {"skew_percent"},
           .default_value = int64_t{0},
           .min = 0,
           .max = kMaxSkew},
          {.name = "scheme",
           .doc = "quantization scheme of the weights",
           .type = AttributeType::kScheme,
           .default_value = QuantScheme::kNone},
          {.name = "gated", .doc = "1: with a gate projection", .min = 0, .max = 1}};
}

Operands expert_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t experts = s["num_experts"], ranks = s["ranks"];
  if (experts % ranks != 0)
    s.fail(fmt::format("{} ranks do not divide {} experts", ranks, experts));
  if (s["top_k"] > experts)
    s.fail(fmt::format("a token cannot go to {} of {} experts: top_k must be at most num_experts",
                       s["top_k"], experts));
  const int64_t own = experts / ranks, ffn = s["ffn_dim"], hidden = s["hidden_dim"];
  const int64_t up = checked_multiply(s["gated"] != 0 ? 2 : 1, ffn);
  return {
      {b.input("x", {s["tokens"], hidden}, s.dtype()), b.input("up", {own, up, hidden}, s.dtype()),
       b.input("down", {own, hidden, ffn}, s.dtype())},
      {{"top_k", s["top_k"]},
       {"ranks", ranks},
       {"skew_percent", s["skew"]},
       {"scheme", s.scheme("scheme")}}};
}

Operands expert_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = expert_operands(b, s);
  operands.inputs.insert(operands.inputs.begin(),
                         b.input("dy", {s["tokens"], s["hidden_dim"]}, s.dtype()));
  return operands;
}

void draw_experts(Rng& rng, SizeList& sizes) {
  const int64_t experts = int64_t{8} << rng.below(7);
  sizes.push_back({"num_experts", experts});
  sizes.push_back({"top_k", std::min<int64_t>(experts, 1 + static_cast<int64_t>(rng.below(16)))});
  sizes.push_back({"ffn_dim", 64 * rng.log_uniform(8)});
  sizes.push_back({"hidden_dim", 1024 * (1 + static_cast<int64_t>(rng.below(8)))});
  constexpr std::array kDrawn = {QuantScheme::kNone, QuantScheme::kFp8, QuantScheme::kFp8Block,
                                 QuantScheme::kInt4WeightOnly};
  sizes.push_back({"scheme", kDrawn[rng.below(kDrawn.size())]});
}

}  // namespace

std::vector<OpDef> expert_ops() {  // NOLINT(readability-function-size): a table
  const std::vector<AttributeDef> attributes = {
      {.name = "top_k",
       .doc = "experts per token",
       .old_name = "chosen",
       .default_value = int64_t{1},
       .min = 1},
      {.name = "ranks",
       .doc = "ranks that the experts are spread over",
       .default_value = int64_t{1},
       .min = 1},
      {.name = "skew_percent",
       .doc = "100 times the exponent of the power law of the experts' load; 0: uniform",
       .default_value = int64_t{0}},
      {.name = "senders",
       .doc = "ranks that sent the rows, one for each token and expert; 1: none",
       .default_value = int64_t{1},
       .min = 1},
      {.name = "sent_top_k",
       .doc = "experts per token of the senders",
       .default_value = int64_t{1},
       .min = 1},
      flag_attribute("own_rows",
                     "1: tensor-parallel ranks have whole experts and rows of their own"),
      {.name = "tensor_ranks",
       .doc = "ranks that divide each expert, where they have rows of their own",
       .default_value = int64_t{1},
       .min = 1},
      flag_attribute("partial", "1: results are summed over tensor-parallel ranks"),
      flag_attribute("keeps", "1: the second output is what the backward pass reads"),
      flag_attribute("frozen", "1: the experts' weights get no gradient"),
      flag_attribute("grouped",
                     "1: sorting, grouped products, activation and sums are kernels of "
                     "their own, as in PyTorch; 0: one fused kernel"),
      flag_attribute("activation_again", "1: the backward pass computes the activation again"),
      flag_attribute("fused_rows", "1: the kernels of Megatron-LM and Transformer Engine"),
      flag_attribute("sorted_again", "1: rows come from other ranks, and are sorted there again"),
      flag_attribute("biased", "1: each expert has biases"),
      flag_attribute("fp32_sum", "1: rows are weighted and summed in fp32"),
      flag_attribute("fp32_router", "1: the router keeps a copy of x in fp32"),
      flag_attribute("all_tokens", "1: each expert multiplies all tokens, which takes memory"),
      flag_attribute("clamped", "1: gate and up are limited before the activation"),
      flag_attribute("scaled_first", "1: another kernel finds the largest value before a cast"),
      {.name = "products",
       .doc = "scheme of products of training in 8 bits",
       .type = AttributeType::kScheme,
       .default_value = QuantScheme::kNone},
      {.name = "scheme",
       .doc = "quantization scheme of the weights",
       .type = AttributeType::kScheme,
       .default_value = QuantScheme::kNone}};
  std::vector<AttributeDef> of_backward = attributes;
  of_backward.push_back(flag_attribute(
      "routed", "1: the last input holds the router's weights, the last output their gradient"));
  return {
      {.name = "experts",
       .doc = "fused layer of experts: each token through its top_k experts, results weighted and "
              "summed",
       .aten = "",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 4,
       .attributes = attributes,
       .infer = infer_experts,
       .work = work_experts,
       .backward = backward_experts,
       // The grouped products take no part in autocast: x is cast to the dtype of the weights,
       // which are in fp32 there (transformers 5.24, integrations/moe.py).
       .autocast = AutocastClass::kFp32,
       .quantization = WeightQuantization{{1, 2}, quantize_experts},
       .sizes = expert_sizes(),
       .operands = expert_operands,
       .random_sizes = RandomSizes{.draw = draw_experts, .in_training = true},
       .decompose = decompose_experts,
       .shard = shard_experts,
       .example = "x: bf16[64, 256] up: bf16[8, 1024, 256] down: bf16[8, 256, 512]"},
      {.name = "experts_backward",
       .doc = "gradients of the input and the weights of a fused expert layer",
       .aten = "",
       .onnx = "",
       .min_inputs = 4,
       .max_inputs = 6,
       .attributes = std::move(of_backward),
       .infer = infer_experts_backward,
       .work = work_experts_backward,
       .sizes = expert_sizes(),
       .operands = expert_backward_operands,
       .example =
           "dy: bf16[64, 256] x: bf16[64, 256] up: bf16[8, 1024, 256] down: bf16[8, 256, 512]"},
  };
}

}  // namespace tilecast
