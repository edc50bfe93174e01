// Recurrent layers over a sequence, as cuDNN runs them: one product for the inputs of all steps,
// then for each step a product with the state and one pointwise kernel. cuDNN may run several steps
// in one kernel, which is not modelled.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Every step launches kernels of its own, so the program grows with the sequence.
constexpr int64_t kMostSteps = 16384;

struct RecurrentSizes {
  int64_t steps, batch, in, hidden, gates, directions;
};

/// x [s, b, in], weights [directions, gates · hidden, in] and [directions, gates · hidden, hidden].
RecurrentSizes sizes_of(const OpContext& context, size_t first) {
  const Shape& x = context.input(first).shape;
  const Shape& w = context.input(first + 1).shape;
  const Shape& r = context.input(first + 2).shape;
  const int64_t gates = context.integer("gates");
  if (x.size() != 3 || w.size() != 3 || r.size() != 3 || w[0] != r[0] || w[1] != r[1] ||
      w[2] != x[2] || r[1] != checked_multiply(gates, r[2]))
    context.fail(
        fmt::format("expected x [s, b, in] and weights [directions, {} · hidden, in] and "
                    "[directions, {} · hidden, hidden], found {}, {} and {}",
                    gates, gates, format_shape(x), format_shape(w), format_shape(r)));
  if (x[0] > kMostSteps)
    context.fail(fmt::format("a sequence of {} steps; at most {} are supported", x[0], kMostSteps));
  return {x[0], x[1], x[2], r[2], gates, w[0]};
}

std::vector<TensorSpec> infer_recurrent(const OpContext& context) {
  const RecurrentSizes s = sizes_of(context, 0);
  const DType dtype = context.input(0).dtype;
  const Shape state = {s.directions, s.batch, s.hidden};
  std::vector<TensorSpec> specs = {
      {.shape = {s.steps, s.batch, checked_multiply(s.directions, s.hidden)}, .dtype = dtype},
      {.shape = state, .dtype = dtype}};
  if (s.gates == 4) specs.push_back(specs.back());  // LSTM: the cells' state
  return specs;
}

Kernel product(DType dtype, int64_t m, int64_t n, int64_t k) {
  Kernel kernel{.shape = Gemm{.m = m, .n = n, .k = k, .trans_b = 1}, .dtype = dtype};
  kernel.flops = checked_product({2, m, n, k});
  const auto bytes = [&](int64_t a, int64_t b) {
    return checked_multiply(checked_multiply(a, b), dtype_bits(dtype)) / 8;
  };
  kernel.read_bytes = checked_add(bytes(m, k), bytes(n, k));
  kernel.write_bytes = bytes(m, n);
  return kernel;
}

/// Reads the gates and the state, writes the state. Each gate: two sums and an activation of four
/// operations; the new state: four.
Kernel cell(const RecurrentSizes& s, DType dtype) {
  const int64_t elements = checked_multiply(s.batch, s.hidden);
  const int64_t bytes = checked_multiply(elements, dtype_bits(dtype)) / 8;
  constexpr int64_t kGateFlops = 6, kStateFlops = 4;
  return {.shape = Stream{.elements = elements},
          .dtype = dtype,
          .flops = checked_multiply(elements, kGateFlops * s.gates + kStateFlops),
          .read_bytes = checked_multiply(bytes, 2 * s.gates + 1),
          .write_bytes = checked_multiply(bytes, 2)};
}

void work_recurrent(const OpContext& context, std::vector<Kernel>& kernels) {
  const RecurrentSizes s = sizes_of(context, 0);
  const DType dtype = context.output(0).dtype;
  const int64_t width = checked_multiply(s.gates, s.hidden);
  for (int64_t d = 0; d < s.directions; ++d) {
    kernels.push_back(product(dtype, checked_multiply(s.steps, s.batch), width, s.in));
    for (int64_t step = 0; step < s.steps; ++step) {
      kernels.push_back(product(dtype, s.batch, width, s.hidden));
      kernels.push_back(cell(s, dtype));
    }
  }
}

void backward_recurrent(GradientBuilder& g, const Node& node) {
  if (g.gradient(node.outputs[0]) < 0) return;
  const std::vector<TensorId> grads =
      g.add("recurrent_backward",
            {g.dense(g.gradient(node.outputs[0])), node.inputs[0], node.inputs[1], node.inputs[2]},
            node.attributes);
  for (size_t i = 0; i < grads.size() && i < node.inputs.size(); ++i) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_recurrent_backward(const OpContext& context) {
  const RecurrentSizes s = sizes_of(context, 1);
  const DType dtype = context.input(0).dtype;
  std::vector<TensorSpec> specs;
  for (size_t i = 1; i <= 3; ++i)
    specs.push_back({.shape = context.input(i).shape, .dtype = dtype});
  specs.push_back(
      {.shape = {s.directions, checked_product({2, s.gates, s.hidden})}, .dtype = dtype});
  return specs;
}

/// For each step the cell and the gradient of its state, then the gradients of all inputs and of
/// both weights as products over all steps.
void work_recurrent_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const RecurrentSizes s = sizes_of(context, 1);
  const DType dtype = context.output(0).dtype;
  const int64_t width = checked_multiply(s.gates, s.hidden);
  const int64_t rows = checked_multiply(s.steps, s.batch);
  for (int64_t d = 0; d < s.directions; ++d) {
    for (int64_t step = 0; step < s.steps; ++step) {
      kernels.push_back(cell(s, dtype));
      kernels.push_back(product(dtype, s.batch, s.hidden, width));
    }
    kernels.push_back(product(dtype, rows, s.in, width));
    kernels.push_back(product(dtype, width, s.in, rows));
    kernels.push_back(product(dtype, width, s.hidden, rows));
  }
}

std::vector<SizeDef> recurrent_sizes() {
  return {{.name = "steps", .doc = "of the sequence", .max = kMostSteps},
          {.name = "batch", .doc = "sequences", .other_names = {"m"}},
          {.name = "in_features", .doc = "of a step's input", .other_names = {"k"}},
          {.name = "hidden_dim", .doc = "of the state", .other_names = {"n"}},
          {.name = "gates",
           .doc = "4: LSTM, 3: GRU, 1: a plain layer",
           .default_value = int64_t{4},
           .max = 4},
          {.name = "directions", .doc = "1 or 2", .max = 2}};
}

Operands recurrent_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t width = checked_multiply(s["gates"], s["hidden_dim"]);
  return {{b.input("x", {s["steps"], s["batch"], s["in_features"]}, s.dtype()),
           b.input("w", {s["directions"], width, s["in_features"]}, s.dtype()),
           b.input("r", {s["directions"], width, s["hidden_dim"]}, s.dtype())},
          {{"gates", s["gates"]}}};
}

Operands recurrent_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = recurrent_operands(b, s);
  const int64_t width = checked_multiply(s["directions"], s["hidden_dim"]);
  operands.inputs.insert(operands.inputs.begin(),
                         b.input("dy", {s["steps"], s["batch"], width}, s.dtype()));
  return operands;
}

}  // namespace

std::vector<OpDef> recurrent_ops() {
  AttributeDef gates = count_attribute("gates", "4: LSTM, 3: GRU, 1: a plain layer");
  gates.max = 4;
  std::vector<OpDef> ops = {
      {.name = "recurrent",
       .doc = "a recurrent layer over x [s, b, in] with weights [directions, gates · hidden, "
              "in] and [directions, gates · hidden, hidden], optional biases and first states",
       .aten = "aten::_cudnn_rnn",
       .onnx = "LSTM",
       .min_inputs = 3,
       .max_inputs = 6,
       .attributes = {gates},
       .infer = infer_recurrent,
       .work = work_recurrent,
       .backward = backward_recurrent,
       .autocast = AutocastClass::kLowPrecision,
       .sizes = recurrent_sizes(),
       .operands = recurrent_operands,
       .example = "x: fp32[8, 2, 16] w: fp32[2, 128, 16] r: fp32[2, 128, 32] b: fp32[2, 256] "
                  "{gates=4}"},
      {.name = "recurrent_backward",
       .doc = "gradients of a recurrent layer's x, weights and biases, from dy, x and weights",
       .aten = "aten::_cudnn_rnn_backward",
       .onnx = "",
       .min_inputs = 4,
       .max_inputs = 4,
       .attributes = {gates},
       .infer = infer_recurrent_backward,
       .work = work_recurrent_backward,
       .sizes = recurrent_sizes(),
       .operands = recurrent_backward_operands,
       .example = "dy: fp32[8, 2, 64] x: fp32[8, 2, 16] w: fp32[2, 128, 16] r: fp32[2, 128, "
                  "32] {gates=4}"}};
  for (OpDef& op : ops) op.unmeasured = true;
  return ops;
}

}  // namespace tilecast
