// Cross entropy, as PyTorch computes it: log_softmax, then the negative log-likelihood of the
// labels (torch.nn.functional.cross_entropy).

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

// FLOPs an element. log_softmax: max, subtract, exp, sum, subtract. Backward: sum, exp, multiply,
// subtract.
constexpr int64_t kLogSoftmaxFlops = 5, kLogSoftmaxBackwardFlops = 4;

void work_rows(const OpContext& context, int64_t flops_per_element, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  if (x.shape.empty()) context.fail("expected rows of at least one dimension, found a scalar");
  const int64_t columns = x.shape.back(), elements = element_count(x.shape);
  Kernel kernel{
      .shape = Rows{columns == 0 ? 0 : elements / columns, columns, Rows::Function::kSoftmax},
      .dtype = x.dtype};
  kernel.flops = checked_multiply(elements, flops_per_element);
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void work_log_softmax(const OpContext& context, std::vector<Kernel>& kernels) {
  work_rows(context, kLogSoftmaxFlops, kernels);
}

void work_log_softmax_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  work_rows(context, kLogSoftmaxBackwardFlops, kernels);
}

void backward_log_softmax(GradientBuilder& g, const Node& node) {
  const TensorId y = node.outputs[0];
  g.add_gradient(node.inputs[0], g.op("log_softmax_backward", {g.gradient(y), y}));
}

// nll_loss: log-probabilities [rows, classes] and labels [rows]: the mean over the rows.
int64_t rows_of(const OpContext& context, const Tensor& x, const Tensor& labels) {
  const int64_t classes = x.shape.empty() ? 1 : x.shape.back();
  const int64_t rows = classes == 0 ? 0 : element_count(x.shape) / classes;
  if (x.shape.empty() || element_count(labels.shape) != rows)
    context.fail(fmt::format("expected a label for each of {} rows, found {}", rows,
                             format_shape(labels.shape)));
  return rows;
}

std::vector<TensorSpec> infer_nll_loss(const OpContext& context) {
  rows_of(context, context.input(0), context.input(1));
  return {{.shape = {1}, .dtype = context.input(0).dtype}};
}

/// One number of each row is read.
void work_nll_loss(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  const int64_t rows = rows_of(context, x, context.input(1));
  Kernel kernel{.shape = Stream{.elements = rows}, .dtype = x.dtype};
  kernel.flops = rows;
  kernel.read_bytes =
      checked_add(tensor_bytes(context.input(1)), checked_multiply(rows, dtype_bits(x.dtype)) / 8);
  kernel.write_bytes = tensor_bytes(context.output(0));
  kernels.push_back(kernel);
}

/// autograd saves the log-probabilities.
void backward_nll_loss(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op("nll_loss_backward", {node.inputs[0], node.inputs[1],
                                                            g.gradient(node.outputs[0])}));
}

std::vector<TensorSpec> infer_nll_loss_backward(const OpContext& context) {
  rows_of(context, context.input(0), context.input(1));
  return infer_same(context);
}

/// Fills the gradient with zeros, then writes one number of each row.
void work_nll_loss_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  Kernel fill{.shape = Stream{.elements = element_count(out.shape)}, .dtype = out.dtype};
  fill.write_bytes = tensor_bytes(out);
  kernels.push_back(fill);
  work_nll_loss(context, kernels);
  kernels.back().write_bytes = kernels.back().read_bytes;
}

/// Passes over the probabilities of cross_entropy, in fp32.
class ProbabilityKernels {
 public:
  ProbabilityKernels(const Tensor& probabilities, std::vector<Kernel>& kernels)
      : elements_(element_count(probabilities.shape)),
        bytes_(tensor_bytes(probabilities)),
        kernels_(kernels) {}

  /// How many of these tensors it reads and writes, and bytes of others.
  void pass(int64_t flops, int64_t reads, int64_t writes, int64_t read_bytes = 0,
            int64_t write_bytes = 0) {
    kernels_.push_back({.shape = Stream{.elements = elements_},
                        .dtype = DType::kFp32,
                        .flops = checked_multiply(elements_, flops),
                        .read_bytes = checked_add(checked_multiply(reads, bytes_), read_bytes),
                        .write_bytes = checked_add(checked_multiply(writes, bytes_), write_bytes)});
  }

 private:
  int64_t elements_, bytes_;
  std::vector<Kernel>& kernels_;
};

/// cross_entropy: logits [rows, classes] and labels; the probabilities in fp32, on which the
/// backward pass works in place, and the loss.
std::vector<TensorSpec> infer_cross_entropy(const OpContext& context) {
  rows_of(context, context.input(0), context.input(1));
  return {{.shape = context.input(0).shape, .dtype = DType::kFp32},
          {.shape = {1}, .dtype = DType::kFp32}};
}

/// Megatron-LM, core/tensor_parallel/cross_entropy.py: the copy in fp32, the largest logit, its
/// difference, exponentials, their sum, the quotient. Compiled (core/fusions/fused_cross_entropy):
/// copy and maximum; difference to sum; quotient.
void work_cross_entropy(const OpContext& context, std::vector<Kernel>& kernels) {
  ProbabilityKernels k(context.output(0), kernels);
  const int64_t logits_bytes = tensor_bytes(context.input(0));
  if (context.integer("compiled") != 0) {
    k.pass(1, 0, 1, logits_bytes);
    k.pass(3, 1, 1);
    return k.pass(1, 1, 1);
  }
  const int64_t row_bytes = checked_multiply(tensor_bytes(context.output(1)),
                                             rows_of(context, context.input(0), context.input(1)));
  k.pass(0, 0, 1, logits_bytes);
  k.pass(1, 1, 0, 0, row_bytes);
  k.pass(1, 1, 1);
  k.pass(1, 1, 1);
  k.pass(1, 1, 0, 0, row_bytes);
  k.pass(1, 1, 1);
}

void backward_cross_entropy(GradientBuilder& g, const Node& node) {
  const std::vector<TensorId> gradients = g.add(
      "cross_entropy_backward", {node.outputs[0], node.inputs[1], g.gradient(node.outputs[1])},
      {{"dtype", g.tensor(node.inputs[0]).dtype},
       {"compiled", attribute<int64_t>(node, "compiled")}});
  g.add_gradient(node.inputs[0], gradients[0]);
}

/// Compiled, the gradient is written in fp32 beside the probabilities, then converted.
std::vector<TensorSpec> infer_cross_entropy_backward(const OpContext& context) {
  rows_of(context, context.input(0), context.input(1));
  const Shape& shape = context.input(0).shape;
  const auto dtype = context.attribute<DType>("dtype");
  std::vector<TensorSpec> specs = {{.shape = shape, .dtype = dtype}};
  if (context.integer("compiled") != 0 && dtype != DType::kFp32)
    specs.push_back({.shape = shape, .dtype = DType::kFp32});
  return specs;
}

/// Times the gradient of the loss, and the copy in the dtype of the logits.
void work_cross_entropy_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  ProbabilityKernels k(context.input(0), kernels);
  k.pass(1, 1, 1);
  const Tensor& dx = context.output(0);
  if (dx.dtype != DType::kFp32) k.pass(0, 1, 0, 0, tensor_bytes(dx));
}

Operands cross_entropy_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("y", {s["rows"], s["columns"]}, DType::kFp32),
           b.input("labels", {s["rows"]}, DType::kInt64), b.input("dy", {1}, DType::kFp32)},
          {{"dtype", s.dtype()}}};
}

Operands log_softmax_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  const Shape shape = {s["rows"], s["columns"]};
  return {{b.input("dy", shape, s.dtype()), b.input("y", shape, s.dtype())}, {}};
}

Operands nll_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype()),
           b.input("labels", {s["rows"]}, DType::kInt64)},
          {}};
}

Operands nll_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = nll_operands(b, s);
  operands.inputs.push_back(b.input("dy", {1}, s.dtype()));
  return operands;
}

}  // namespace

std::vector<OpDef> loss_ops() {  // NOLINT(readability-function-size): a table
  return {
      {.name = "log_softmax",
       .doc = "logarithm of softmax over the last dimension",
       .aten = "aten::_log_softmax",
       .onnx = "LogSoftmax",
       .infer = infer_same,
       .work = work_log_softmax,
       .backward = backward_log_softmax,
       .autocast = AutocastClass::kPromote,
       .example = "x: fp32[64, 256]"},
      {.name = "log_softmax_backward",
       .doc = "backward of log_softmax, from dy and y",
       .aten = "aten::_log_softmax_backward_data",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_same,
       .work = work_log_softmax_backward,
       .operands = log_softmax_backward_operands,
       .example = "x: fp32[64, 256] y: fp32[64, 256]"},
      {.name = "nll_loss",
       .doc = "mean negative log-likelihood of labels [rows] in x [rows, classes]",
       .aten = "aten::nll_loss_forward",
       .onnx = "NegativeLogLikelihoodLoss",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_nll_loss,
       .work = work_nll_loss,
       .backward = backward_nll_loss,
       .autocast = AutocastClass::kFp32,
       .operands = nll_operands,
       .example = "x: fp32[64, 256] l: int64[64]"},
      {.name = "cross_entropy",
       .doc = "cross entropy of logits [rows, classes] and labels [rows] on one copy in fp32: the "
              "probabilities, the loss",
       .aten = "",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {flag_attribute("compiled", "1: fewer kernels, as a compiler makes them")},
       .infer = infer_cross_entropy,
       .work = work_cross_entropy,
       .backward = backward_cross_entropy,
       .operands = nll_operands,
       .example = "x: bf16[64, 256] l: int64[64]"},
      {.name = "cross_entropy_backward",
       .doc = "gradient of cross_entropy's logits: probabilities, labels, gradient of the loss",
       .aten = "",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {{.name = "dtype",
                       .doc = "of the gradient; 16 bits: another kernel converts it",
                       .type = AttributeType::kDType,
                       .required = true},
                      flag_attribute("compiled", "1: not in place")},
       .infer = infer_cross_entropy_backward,
       .work = work_cross_entropy_backward,
       .operands = cross_entropy_backward_operands,
       .example = "y: fp32[64, 256] l: int64[64] dy: fp32[1] {dtype=bf16}"},
      {.name = "nll_loss_backward",
       .doc = "gradient of nll_loss's input: x, labels, gradient of the loss",
       .aten = "aten::nll_loss_backward",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_nll_loss_backward,
       .work = work_nll_loss_backward,
       .operands = nll_backward_operands,
       .example = "x: fp32[64, 256] l: int64[64] dy: fp32[1]"},
  };
}

}  // namespace tilecast
