// Operators that work on whole rows: softmax, norms, sampling.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Number and length of the rows of a tensor.
struct RowSizes {
  int64_t rows, columns;
};

RowSizes row_sizes(const OpContext& context, const Tensor& x) {
  if (x.shape.empty()) context.fail("expected rows of at least one dimension, found a scalar");
  const int64_t columns = x.shape.back();
  return {columns == 0 ? 0 : element_count(x.shape) / columns, columns};
}

/// A kernel that reads all inputs and writes all outputs once, with so many FLOPs for each element
/// of `x`.
Kernel row_kernel(const OpContext& context, KernelVariant shape, const Tensor& x,
                  int64_t flops_per_element) {
  Kernel kernel{.shape = shape, .dtype = x.dtype};
  kernel.flops = checked_multiply(element_count(x.shape), flops_per_element);
  add_traffic(kernel, context);
  return kernel;
}

/// Rows of the first input.
Kernel input_rows(const OpContext& context, Rows::Function function, int64_t flops_per_element) {
  const RowSizes sizes = row_sizes(context, context.input(0));
  return row_kernel(context, Rows{sizes.rows, sizes.columns, function}, context.input(0),
                    flops_per_element);
}

// FLOPs an element. Softmax: max, subtract, exp, sum, divide. Layer norm: mean, variance (subtract,
// square, add), normalize (subtract, multiply), scale, shift.
constexpr int64_t kSoftmaxFlops = 5, kSoftmaxBackwardFlops = 3;
constexpr int64_t kLayerNormFlops = 8, kLayerNormBackwardFlops = 9;

/// With `dtype`, the kernel converts its input, or the gradient that it returns.
std::vector<TensorSpec> infer_softmax(const OpContext& context) {
  std::vector<TensorSpec> specs = infer_same(context);
  if (const AttributeValue* dtype = context.node.find_attribute("dtype"))
    specs[0].dtype = std::get<DType>(*dtype);
  return specs;
}

/// Number and length of the rows that a softmax over its `dim` normalizes.
RowSizes softmax_sizes(const OpContext& context) {
  const Shape& shape = context.input(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t dim = integer_or(context.node, "dim", std::max<int64_t>(0, rank - 1));
  if (dim < 0 || dim >= rank)
    context.fail(fmt::format("no dimension {} in {}", dim, format_shape(shape)));
  const int64_t columns = shape[static_cast<size_t>(dim)];
  return {columns == 0 ? 0 : element_count(shape) / columns, columns};
}

Kernel softmax_kernel(const OpContext& context, int64_t flops_per_element) {
  const RowSizes sizes = softmax_sizes(context);
  return row_kernel(context, Rows{sizes.rows, sizes.columns, Rows::Function::kSoftmax},
                    context.input(0), flops_per_element);
}

AttributeDef softmax_dim() {
  return {.name = "dim", .doc = "over which dimension; default: the last"};
}

AttributeDef softmax_dtype() {
  return {.name = "dtype",
          .doc = "of the output; default: as the input",
          .type = AttributeType::kDType};
}

void work_softmax(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(softmax_kernel(context, kSoftmaxFlops));
}

/// autograd multiplies dy by y in a separate kernel, then reduces the rows.
void backward_softmax(GradientBuilder& g, const Node& node) {
  const TensorId y = node.outputs[0];
  const TensorId product = g.op("mul", {g.gradient(y), y});
  std::vector<Attribute> attributes;
  if (node.find_attribute("dtype") != nullptr)
    attributes.push_back({"dtype", g.tensor(node.inputs[0]).dtype});
  if (const AttributeValue* dim = node.find_attribute("dim")) attributes.push_back({"dim", *dim});
  g.add_gradient(node.inputs[0], g.op("softmax_backward", {product, y}, std::move(attributes)));
}

void work_softmax_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(softmax_kernel(context, kSoftmaxBackwardFlops));
}

std::vector<TensorSpec> infer_layer_norm(const OpContext& context) {
  const Tensor& x = context.input(0);
  if (x.shape.empty()) context.fail("expected rows of at least one dimension, found a scalar");
  for (size_t i = 1; i < context.input_count(); ++i) {
    if (element_count(context.input(i).shape) != x.shape.back())
      context.fail(fmt::format("weight {} does not fit rows of {}",
                               format_shape(context.input(i).shape), x.shape.back()));
  }
  Shape statistics(x.shape.begin(), x.shape.end() - 1);
  return {{.shape = x.shape, .dtype = x.dtype},
          {.shape = statistics, .dtype = DType::kFp32},
          {.shape = statistics, .dtype = DType::kFp32}};
}

void work_layer_norm(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(input_rows(context, Rows::Function::kNorm, kLayerNormFlops));
}

void backward_layer_norm(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const TensorId x = node.inputs[0];
  if (g.requires_grad(x)) {
    g.add_gradient(x, g.op("layer_norm_backward", {dy, x, node.outputs[1], node.outputs[2]}));
  }
  // One kernel computes the gradients of weight and bias.
  if (node.inputs.size() > 1 && g.requires_grad(node.inputs[1])) {
    const std::vector<TensorId> grads =
        g.add("layer_norm_weight_backward", {dy, x, node.outputs[1], node.outputs[2]});
    for (size_t i = 1; i < node.inputs.size(); ++i) g.add_gradient(node.inputs[i], grads[i - 1]);
  }
}

void work_layer_norm_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(input_rows(context, Rows::Function::kNorm, kLayerNormBackwardFlops));
}

std::vector<TensorSpec> infer_layer_norm_weight_backward(const OpContext& context) {
  const Shape row = {context.input(0).shape.empty() ? 1 : context.input(0).shape.back()};
  const DType dtype = context.input(0).dtype;
  return {{.shape = row, .dtype = dtype}, {.shape = row, .dtype = dtype}};
}

void work_layer_norm_weight_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const RowSizes sizes = row_sizes(context, context.input(0));
  kernels.push_back(row_kernel(context, Stream{sizes.rows, sizes.columns}, context.input(0), 4));
}

/// The first output of a fused kernel gives its rows; inputs may be smaller (masks, biases).
void work_fused_rows(const OpContext& context, Rows::Function function,
                     std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  const RowSizes sizes = row_sizes(context, y);
  kernels.push_back(row_kernel(context, Rows{sizes.rows, sizes.columns, function}, y,
                               context.integer("flops_per_element")));
}

void work_fused_softmax(const OpContext& context, std::vector<Kernel>& kernels) {
  work_fused_rows(context, Rows::Function::kSoftmax, kernels);
}

void work_fused_layer_norm(const OpContext& context, std::vector<Kernel>& kernels) {
  work_fused_rows(context, Rows::Function::kNorm, kernels);
}

// rms_norm and add_rms_norm: square, sum, scale and multiply by the weight in one kernel, as in
// serving software.
std::vector<TensorSpec> infer_rms_norm(const OpContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& weight = context.input(context.input_count() - 1);
  const bool weighted = context.input_count() > 1;
  // A weight for each row of a matrix, e.g. for each head, is allowed too.
  const size_t n = x.shape.size();
  const bool per_row = n > 1 && weight.shape == Shape{x.shape[n - 2], x.shape[n - 1]};
  if (x.shape.empty() || (weighted && !per_row && element_count(weight.shape) != x.shape.back()))
    context.fail(fmt::format("weight {} does not fit rows of {}", format_shape(weight.shape),
                             format_shape(x.shape)));
  std::vector<TensorSpec> specs = {{.shape = x.shape, .dtype = x.dtype}};
  if (context.input_count() == 3) specs.push_back(specs.front());  // the sum is an output too
  return specs;
}

void work_rms_norm(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(input_rows(context, Rows::Function::kNorm, context.input_count() == 3 ? 5 : 4));
}

/// Transformer Engine's norms (transformer_engine/common/normalization): one kernel for the
/// gradients of input and weight.
void backward_rms_norm(GradientBuilder& g, const Node& node) {
  const TensorId x = node.inputs[0];
  std::vector<TensorId> operands = {g.dense(g.gradient(node.outputs[0])), x};
  if (node.inputs.size() == 2) operands.push_back(node.inputs[1]);
  const std::vector<TensorId> grads = g.add("rms_norm_backward", operands);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_rms_norm_backward(const OpContext& context) {
  std::vector<TensorSpec> specs;
  for (size_t i = 1; i < context.input_count(); ++i)
    specs.push_back({.shape = context.input(i).shape, .dtype = context.input(i).dtype});
  return specs;
}

void work_rms_norm_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  constexpr int64_t kFlops = 8;  // two sums of products, the difference, the scale, the weight's
  kernels.push_back(input_rows(context, Rows::Function::kNorm, kFlops));
}

// sample: one token per row of logits: scale, softmax, prefix sum, compare.
std::vector<TensorSpec> infer_sample(const OpContext& context) {
  Shape shape = context.input(0).shape;
  if (shape.empty()) context.fail("expected rows of logits, found a scalar");
  shape.back() = 1;
  return {{.shape = shape, .dtype = DType::kInt64}};
}

/// Serving software draws tokens from a copy of the logits in FP32 (vLLM's v1/sample/sampler.py,
/// SGLang's layers/sampler.py): the copy, and a pass over it for the largest one. Other ways to
/// draw (temperature, top-p) take more passes.
void work_sample(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel = input_rows(context, Rows::Function::kSoftmax, 8);
  constexpr int64_t kCopiedBytes = 4;
  const int64_t copy = checked_multiply(element_count(context.input(0).shape), kCopiedBytes);
  kernel.read_bytes = checked_add(kernel.read_bytes, copy);
  kernel.write_bytes = checked_add(kernel.write_bytes, copy);
  kernels.push_back(kernel);
}

/// x [rows, columns] and `vectors` vectors of the length of a row.
Operands norm_operands(GraphBuilder& b, const GivenSizes& s, int tensors, int vectors) {
  Operands operands;
  for (int i = 0; i < tensors; ++i)
    operands.inputs.push_back(b.input("x", {s["rows"], s["columns"]}, s.dtype()));
  for (int i = 0; i < vectors; ++i)
    operands.inputs.push_back(b.input("w", {s["columns"]}, s.dtype()));
  return operands;
}

Operands layer_norm_operands(GraphBuilder& b, const GivenSizes& s) {
  return norm_operands(b, s, 1, 2);
}
Operands rms_norm_operands(GraphBuilder& b, const GivenSizes& s) {
  return norm_operands(b, s, 1, 1);
}
Operands add_rms_norm_operands(GraphBuilder& b, const GivenSizes& s) {
  return norm_operands(b, s, 2, 1);
}

Operands rms_norm_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  return norm_operands(b, s, 2, 1);
}

Operands layer_norm_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = norm_operands(b, s, 2, 0);
  for (const char* name : {"mean", "rstd"})
    operands.inputs.push_back(b.input(name, {s["rows"]}, DType::kFp32));
  return operands;
}

Operands fused_norm_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"flops_per_element", 1}};
  return operands;
}

OpDef fused_rows(std::string_view name, std::string_view doc, decltype(OpDef::work) work) {
  return {
      .name = name,
      .doc = doc,
      .max_inputs = 64,
      .attributes = {{.name = "flops_per_element", .doc = "sum over the chain", .required = true}},
      .infer = infer_same,
      .work = work,
      .is_fused = true,
      .operands = fused_norm_operands,
      .example = "x: fp32[64, 256] y: fp32[64, 256] {flops_per_element=7}"};
}

}  // namespace

std::vector<OpDef> row_ops() {  // NOLINT(readability-function-size): a table
  return {
      fused_rows("fused_softmax", "a softmax, or its backward, with the pointwise chain before it",
                 work_fused_softmax),
      fused_rows("fused_layer_norm",
                 "a layer norm, or its backward, with the pointwise chain before it",
                 work_fused_layer_norm),
      {.name = "softmax",
       .doc = "softmax over the last or another dimension",
       .aten = "aten::_softmax",
       .onnx = "Softmax",
       .attributes = {softmax_dtype(), softmax_dim()},
       .infer = infer_softmax,
       .work = work_softmax,
       .backward = backward_softmax,
       .autocast = AutocastClass::kFp32,
       .row_fusion = RowFusion{"fused_softmax", kSoftmaxFlops},
       .random_sizes = RandomSizes{.in_training = true},
       .example = "x: fp32[64, 256]"},
      {.name = "softmax_backward",
       .doc = "backward of softmax, from dy * y and y",
       .aten = "aten::_softmax_backward_data",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {softmax_dtype(), softmax_dim()},
       .infer = infer_softmax,
       .work = work_softmax_backward,
       .row_fusion = RowFusion{"fused_softmax", kSoftmaxBackwardFlops},
       .example = "x: fp32[64, 256] y: fp32[64, 256]"},
      {.name = "layer_norm",
       .doc = "normalizes rows to mean 0 and variance 1, then scales and shifts",
       .aten = "aten::native_layer_norm",
       .onnx = "LayerNormalization",
       .max_inputs = 3,
       .infer = infer_layer_norm,
       .work = work_layer_norm,
       .backward = backward_layer_norm,
       .autocast = AutocastClass::kFp32,
       .row_fusion = RowFusion{"fused_layer_norm", kLayerNormFlops},
       .operands = layer_norm_operands,
       .random_sizes = RandomSizes{.in_training = true},
       .shard = shard_rows,
       .example = "x: fp32[64, 256] w: fp32[256] b: fp32[256]"},
      {.name = "layer_norm_backward",
       .doc = "gradient of a layer norm's input",
       .aten = "aten::native_layer_norm_backward",
       .onnx = "",
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_same,
       .work = work_layer_norm_backward,
       .row_fusion = RowFusion{"fused_layer_norm", kLayerNormBackwardFlops},
       .operands = layer_norm_backward_operands,
       .example = "x: fp32[64, 256] y: fp32[64, 256] m: fp32[64] r: fp32[64]"},
      {.name = "layer_norm_weight_backward",
       .doc = "gradients of a layer norm's weight and bias",
       .aten = "aten::native_layer_norm_backward",
       .onnx = "",
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_layer_norm_weight_backward,
       .work = work_layer_norm_weight_backward,
       .operands = layer_norm_backward_operands,
       .example = "x: fp32[64, 256] y: fp32[64, 256] m: fp32[64] r: fp32[64]"},
      {.name = "rms_norm",
       .doc = "divides rows by their root mean square, times an optional weight, in one kernel",
       .aten = "aten::rms_norm",
       .onnx = "RMSNormalization",
       .min_inputs = 1,
       .max_inputs = 2,
       .attributes = {flag_attribute("wide_weight",
                                     "1: eager code multiplies by the weight in fp32, before the "
                                     "cast back"),
                      flag_attribute("keeps_input", "1: eager code multiplies x, not its copy")},
       .infer = infer_rms_norm,
       .work = work_rms_norm,
       .backward = backward_rms_norm,
       .autocast = AutocastClass::kFp32,
       .operands = rms_norm_operands,
       .decompose = decompose_rms_norm,
       .shard = shard_rows,
       .example = "x: bf16[64, 256] w: bf16[256]"},
      {.name = "rms_norm_backward",
       .doc = "gradients of rms_norm's input and weight: dy, x, weight",
       .aten = "aten::_fused_rms_norm_backward",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = infer_rms_norm_backward,
       .work = work_rms_norm_backward,
       .operands = rms_norm_backward_operands,
       .example = "dy: bf16[64, 256] x: bf16[64, 256] w: bf16[256]"},
      {.name = "add_rms_norm",
       .doc = "adds a residual; returns the sum and its rms_norm, in one kernel",
       .aten = "",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_rms_norm,
       .work = work_rms_norm,
       .operands = add_rms_norm_operands,
       .example = "x: bf16[64, 256] r: bf16[64, 256] w: bf16[256]"},
      {.name = "sample",
       .doc = "draws a token from each row of logits",
       .aten = "",
       .onnx = "",
       .infer = infer_sample,
       .work = work_sample,
       .example = "x: fp32[8, 4096]"},
  };
}

}  // namespace tilecast
