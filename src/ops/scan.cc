// Recurrences over tokens: the layers of state-space models (Mamba-2; Dao, Gu 2024) and gated delta
// nets (Yang et al. 2024). Each head holds a state of [head_dim, state_dim] that decays, takes in a
// value times a key at every token, and is read by a query. A short convolution over tokens comes
// before it. Serving software keeps the states of both between steps.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

// linear_scan: values [b, s, heads, d], keys and queries [b, s, groups, n], decay [b, s, heads], or
// [b, s, heads, n] with a decay for each element of a key (Kimi Delta Attention).
Scan scan_sizes(const OpContext& context, size_t first_input) {
  const Shape& values = context.input(first_input).shape;
  const Shape& keys = context.input(first_input + 1).shape;
  const Shape& queries = context.input(first_input + 2).shape;
  const Shape& decay = context.input(first_input + 3).shape;
  const bool sizes_fit = values.size() == 4 && keys.size() == 4 && keys == queries &&
                         keys[0] == values[0] && keys[1] == values[1];
  const bool one_decay = sizes_fit && decay == Shape(values.begin(), values.end() - 1);
  if (!one_decay && (!sizes_fit || decay != Shape{values[0], values[1], values[2], keys[3]}))
    context.fail(fmt::format(
        "expected values [b, s, heads, d], keys and queries [b, s, groups, n] "
        "and a decay [b, s, heads] or [b, s, heads, n], found {}, {}, {} and {}",
        format_shape(values), format_shape(keys), format_shape(queries), format_shape(decay)));
  if (keys[2] < 1 || values[2] % keys[2] != 0)
    context.fail(fmt::format("{} groups of keys do not divide {} heads", keys[2], values[2]));
  return {.batch = values[0],
          .tokens = values[1],
          .heads = values[2],
          .head_dim = values[3],
          .state_dim = keys[3]};
}

/// Inputs of linear_scan without the states.
constexpr size_t kScanInputs = 4;

void check_states(const OpContext& context, size_t input, const Shape& expected) {
  if (context.input_count() <= input || context.input(input).shape == expected) return;
  context.fail(fmt::format("expected states {}, found {}", format_shape(expected),
                           format_shape(context.input(input).shape)));
}

std::vector<TensorSpec> infer_scan(const OpContext& context) {
  const Scan s = scan_sizes(context, 0);
  check_states(context, kScanInputs, {s.batch, s.heads, s.head_dim, s.state_dim});
  return {{.shape = context.input(0).shape, .dtype = context.input(0).dtype}};
}

/// The recurrence is computed token by token, and the state stays on chip. Chunked kernels do more
/// FLOPs on matrix units; they are not modelled.
Kernel scan_kernel(const OpContext& context, const Scan& sizes, int64_t flops_per_state) {
  Kernel kernel{.shape = sizes, .dtype = context.input(0).dtype};
  kernel.flops = checked_product(
      {flops_per_state, sizes.batch, sizes.tokens, sizes.heads, sizes.head_dim, sizes.state_dim});
  add_traffic(kernel, context);
  return kernel;
}

/// States, where the node has them, are an input that is written back.
void write_states(Kernel& kernel, const OpContext& context, size_t input) {
  if (context.input_count() > input)
    kernel.write_bytes = checked_add(kernel.write_bytes, tensor_bytes(context.input(input)));
}

bool is_delta(const OpContext& context) { return context.integer("delta") != 0; }

void work_scan(const OpContext& context, std::vector<Kernel>& kernels) {
  // FLOPs per element of the state: decay 1, update 2, read-out 2. The delta rule first subtracts
  // the state's current value for the key: 2 more.
  const int64_t flops = is_delta(context) ? 7 : 5;
  kernels.push_back(scan_kernel(context, scan_sizes(context, 0), flops));
  write_states(kernels.back(), context, kScanInputs);
}

void backward_scan(GradientBuilder& g, const Node& node) {
  if (node.inputs.size() > kScanInputs) return;  // states are kept for inference only
  std::vector<TensorId> inputs = {g.dense(g.gradient(node.outputs[0]))};
  inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.end());
  const std::vector<TensorId> grads = g.add("linear_scan_backward", inputs, node.attributes);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_scan_backward(const OpContext& context) {
  scan_sizes(context, 1);
  std::vector<TensorSpec> specs;
  for (size_t i = 1; i < context.input_count(); ++i)
    specs.push_back({.shape = context.input(i).shape, .dtype = context.input(i).dtype});
  return specs;
}

void work_scan_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  Scan sizes = scan_sizes(context, 1);
  sizes.backward = true;
  // FLOPs per element of the state: recomputing it 3, its gradient backwards in time 3, and one sum
  // of products (2) for each of the gradients of value, key, query and decay. The delta rule adds 2
  // each to the recomputation, to the gradient of the state and to that of the key.
  const int64_t flops = is_delta(context) ? 20 : 14;
  kernels.push_back(scan_kernel(context, sizes, flops));
}

std::vector<SizeDef> scan_size_defs() {
  return {{.name = "batch", .doc = "sequences"},
          {.name = "tokens", .doc = "of a sequence", .other_names = {"m"}},
          {.name = "heads", .doc = "heads, each with its own state", .default_value = int64_t{8}},
          {.name = "head_dim", .doc = "elements of a value", .other_names = {"k"}},
          {.name = "state_dim", .doc = "elements of a key and a query", .other_names = {"n"}},
          {.name = "groups", .doc = "of heads that share keys and queries"},
          switch_size("delta",
                      "delta rule: subtracts the state's value for the key from each value first")};
}

SizeDef cached_size() {
  return switch_size("cached",
                     "the sequences' states are read from memory and written back, as in serving");
}

std::vector<SizeDef> cached_scan_size_defs() {
  std::vector<SizeDef> sizes = scan_size_defs();
  sizes.push_back(cached_size());
  return sizes;
}

Operands scan_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t batch = s["batch"], tokens = s["tokens"], heads = s["heads"];
  const Shape key = {batch, tokens, s["groups"], s["state_dim"]};
  return {
      {b.input("v", {batch, tokens, heads, s["head_dim"]}, s.dtype()), b.input("k", key, s.dtype()),
       b.input("q", key, s.dtype()), b.input("a", {batch, tokens, heads}, DType::kFp32)},
      {{"delta", s["delta"]}}};
}

/// vLLM and SGLang keep the states in fp32.
Operands cached_scan_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = scan_operands(b, s);
  const Shape states = {s["batch"], s["heads"], s["head_dim"], s["state_dim"]};
  if (s["cached"] != 0) operands.inputs.push_back(b.input("states", states, DType::kFp32));
  return operands;
}

Operands scan_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = scan_operands(b, s);
  const Shape output = {s["batch"], s["tokens"], s["heads"], s["head_dim"]};
  operands.inputs.insert(operands.inputs.begin(), b.input("dy", output, s.dtype()));
  return operands;
}

// causal_conv1d: x [b, s, channels], weight [channels, width], states [b, channels, width - 1].
std::vector<TensorSpec> infer_convolution(const OpContext& context) {
  const Shape& x = context.input(0).shape;
  const Shape& weight = context.input(1).shape;
  if (x.size() != 3 || weight.size() != 2 || weight[0] != x[2] || weight[1] < 2)
    context.fail(fmt::format(
        "expected x [b, s, channels] and a weight [channels, width] of width 2 or more, found {} "
        "and {}",
        format_shape(x), format_shape(weight)));
  check_states(context, 2, {x[0], x[2], weight[1] - 1});
  return {{.shape = x, .dtype = context.input(0).dtype}};
}

void work_convolution(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t elements = element_count(context.output(0).shape);
  Kernel kernel{.shape = Stream{.elements = elements}, .dtype = context.input(0).dtype};
  kernel.flops = checked_product({2, context.input(1).shape[1], elements});
  add_traffic(kernel, context);
  write_states(kernel, context, 2);
  kernels.push_back(kernel);
}

void backward_convolution(GradientBuilder& g, const Node& node) {
  if (node.inputs.size() > 2) return;  // states are kept for inference only
  const std::vector<TensorId> grads = g.add(
      "causal_conv1d_backward",
      {g.dense(g.gradient(node.outputs[0])), node.inputs[0], node.inputs[1]}, node.attributes);
  for (size_t i = 0; i < 2; ++i) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_convolution_backward(const OpContext& context) {
  if (context.input(0).shape != context.input(1).shape)
    context.fail(fmt::format("expected dy of x's shape, found {} and {}",
                             format_shape(context.input(0).shape),
                             format_shape(context.input(1).shape)));
  return {{.shape = context.input(1).shape, .dtype = context.input(1).dtype},
          {.shape = context.input(2).shape, .dtype = context.input(2).dtype}};
}

/// As many FLOPs for each gradient as forward, in one kernel.
void work_convolution_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t elements = element_count(context.input(1).shape);
  Kernel kernel{.shape = Stream{.elements = elements}, .dtype = context.input(1).dtype};
  kernel.flops = checked_product({4, context.input(2).shape.back(), elements});
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

std::vector<SizeDef> convolution_size_defs() {
  return {{.name = "batch", .doc = "sequences"},
          {.name = "tokens", .doc = "of a sequence", .other_names = {"m"}},
          {.name = "channels", .doc = "elements per token", .other_names = {"n"}},
          {.name = "width", .doc = "tokens of the window", .default_value = int64_t{4}, .min = 2},
          cached_size()};
}

Operands convolution_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t channels = s["channels"], width = s["width"];
  Operands operands{{b.input("x", {s["batch"], s["tokens"], channels}, s.dtype()),
                     b.input("w", {channels, width}, s.dtype())},
                    {}};
  if (s["cached"] != 0)
    operands.inputs.push_back(b.input("states", {s["batch"], channels, width - 1}, s.dtype()));
  return operands;
}

Operands convolution_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  const Shape x = {s["batch"], s["tokens"], s["channels"]};
  return {{b.input("dy", x, s.dtype()), b.input("x", x, s.dtype()),
           b.input("w", {s["channels"], s["width"]}, s.dtype())},
          {}};
}

std::vector<SizeDef> convolution_backward_size_defs() {
  std::vector<SizeDef> sizes = convolution_size_defs();
  sizes.pop_back();  // without states
  return sizes;
}

}  // namespace

std::vector<OpDef> scan_ops() {
  const AttributeDef delta = flag_attribute("delta",
                                            "1: delta rule, subtracts the state's value for the "
                                            "key from each value first (gated delta net)");
  return {
      {.name = "linear_scan",
       .doc = "linear recurrence: a state per head decays, adds value times key and is read by a "
              "query, token by token (Mamba-2, gated delta net); a fifth input holds states [b, "
              "heads, d, n] that are read and written back",
       .aten = "",
       .onnx = "",
       .min_inputs = kScanInputs,
       .max_inputs = kScanInputs + 1,
       .attributes = {delta},
       .infer = infer_scan,
       .work = work_scan,
       .backward = backward_scan,
       .sizes = cached_scan_size_defs(),
       .operands = cached_scan_operands,
       .shard = shard_like_first,
       .example = "v: fp32[2, 128, 8, 64] k: fp32[2, 128, 2, 128] q: fp32[2, 128, 2, 128] a: "
                  "fp32[2, 128, 8]"},
      {.name = "linear_scan_backward",
       .doc = "gradients of the inputs of linear_scan, after the output's gradient",
       .aten = "",
       .onnx = "",
       .min_inputs = 5,
       .max_inputs = 5,
       .attributes = {delta},
       .infer = infer_scan_backward,
       .work = work_scan_backward,
       .sizes = scan_size_defs(),
       .operands = scan_backward_operands,
       .example = "dy: bf16[2, 128, 8, 64] v: bf16[2, 128, 8, 64] k: bf16[2, 128, 2, 128] q: "
                  "bf16[2, 128, 2, 128] a: fp32[2, 128, 8]"},
      {.name = "causal_conv1d",
       .doc = "convolution of each channel over the last tokens: x [b, s, channels], weight "
              "[channels, width]; a third input holds the states [b, channels, width - 1] that are "
              "read and written back",
       .aten = "",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_convolution,
       .work = work_convolution,
       .backward = backward_convolution,
       .sizes = convolution_size_defs(),
       .operands = convolution_operands,
       .shard = shard_convolution,
       .example = "x: bf16[2, 128, 64] w: bf16[64, 4]"},
      {.name = "causal_conv1d_backward",
       .doc = "gradients of x and the weight of causal_conv1d, after the output's gradient",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_convolution_backward,
       .work = work_convolution_backward,
       .sizes = convolution_backward_size_defs(),
       .operands = convolution_backward_operands,
       .example = "dy: bf16[2, 128, 64] x: bf16[2, 128, 64] w: bf16[64, 4]"},
  };
}

}  // namespace tilecast
