// Reductions over dimensions.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

// reductions: `shape` is the shape of the result; its element count must divide the input's.
std::vector<TensorSpec> infer_reduce(const OpContext& context) {
  const Shape& shape = context.attribute<Shape>("shape");
  const int64_t from = element_count(context.input(0).shape);
  const int64_t to = element_count(shape);
  if (to <= 0 || from % to != 0)
    context.fail(fmt::format("cannot reduce {} to {}", format_shape(context.input(0).shape),
                             format_shape(shape)));
  return {{.shape = shape, .dtype = context.input(0).dtype}};
}

void work_reduce(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t results = element_count(context.output(0).shape);
  Kernel kernel{.shape = Stream{results, element_count(context.input(0).shape) / results},
                .dtype = context.input(0).dtype};
  kernel.flops = element_count(context.input(0).shape);
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

/// The gradient of a mean is expanded to the input's shape and divided by the length of a row, in
/// one kernel. The gradient of a sum is a view.
void backward_mean(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  const TensorId wide = g.op("expand", {dy}, {{"shape", g.tensor(node.inputs[0]).shape}});
  g.add_gradient(node.inputs[0], g.op("div_scalar", {wide}));
}

void backward_sum(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  g.add_gradient(node.inputs[0], g.op("expand", {dy}, {{"shape", g.tensor(node.inputs[0]).shape}}));
}

std::vector<TensorSpec> infer_argmax(const OpContext& context) {
  std::vector<TensorSpec> specs = infer_reduce(context);
  specs[0].dtype = DType::kInt64;
  return specs;
}

/// A copy to the host, which waits for all that was launched before.
void work_item(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel{.shape = Stream{}, .dtype = context.input(0).dtype};
  add_traffic(kernel, context);
  kernel.host.waits = true;
  kernels.push_back(kernel);
}

/// Mean and squared differences in one pass (Welford): three operations an element.
void work_variance(const OpContext& context, std::vector<Kernel>& kernels) {
  work_reduce(context, kernels);
  constexpr int64_t kFlops = 3;
  kernels.back().flops = checked_multiply(kernels.back().flops, kFlops);
}

/// 2 / n (x - mean) dy: the difference, then its product with the gradient.
void backward_variance(GradientBuilder& g, const Node& node) {
  const TensorId x = node.inputs[0];
  const TensorId dy = g.gradient(node.outputs[0]);
  const TensorId wide = g.op("expand", {dy}, {{"shape", g.tensor(x).shape}});
  const TensorId centred = g.op("add_scalar", {x});
  g.add_gradient(x, g.op("mul", {g.op("mul_scalar", {wide}), centred}));
}

/// The gradient goes to the chosen elements: those that equal the result.
void backward_extreme(GradientBuilder& g, const Node& node) {
  const TensorId x = node.inputs[0];
  const Shape shape = g.tensor(x).shape;
  const TensorId wide = g.op("expand", {g.gradient(node.outputs[0])}, {{"shape", shape}});
  const TensorId best = g.op("expand", {node.outputs[0]}, {{"shape", shape}});
  g.add_gradient(x, g.op("where", {g.op("compare", {x, best}), wide}));
}

/// Reduces each row to one number.
Operands reduce_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"shape", Shape{s["rows"], 1}}};
  return operands;
}

}  // namespace

std::vector<OpDef> reduction_ops() {  // NOLINT(readability-function-size): a table
  const AttributeDef shape{.name = "shape",
                           .doc = "the shape of the result",
                           .type = AttributeType::kIntegers,
                           .required = true};
  return {
      {.name = "reduce_mean",
       .doc = "mean over dimensions",
       .aten = "aten::mean.dim",
       .onnx = "ReduceMean",
       .attributes = {shape},
       .infer = infer_reduce,
       .work = work_reduce,
       .backward = backward_mean,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[64, 1]}"},
      {.name = "reduce_sum",
       .doc = "sum over dimensions",
       .aten = "aten::sum.dim_IntList",
       .onnx = "ReduceSum",
       .attributes = {shape},
       .infer = infer_reduce,
       .work = work_reduce,
       .backward = backward_sum,
       .autocast = AutocastClass::kFp32,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[256]}"},
      {.name = "reduce_max",
       .doc = "maximum (and its index) over dimensions",
       .aten = "aten::max.dim",
       .onnx = "ReduceMax",
       .attributes = {shape},
       .infer = infer_reduce,
       .work = work_reduce,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[64, 1]}"},
      {.name = "reduce_min",
       .doc = "minimum (and its index) over dimensions",
       .aten = "aten::min.dim",
       .onnx = "ReduceMin",
       .attributes = {shape},
       .infer = infer_reduce,
       .work = work_reduce,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[64, 1]}"},
      {.name = "reduce_extreme",
       .doc = "maximum or minimum over dimensions, without its index",
       .aten = "aten::amax",
       .onnx = "ReduceMax",
       .attributes = {shape},
       .infer = infer_reduce,
       .work = work_reduce,
       .backward = backward_extreme,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[64, 1]}"},
      {.name = "reduce_prod",
       .doc = "product over dimensions; of masks: all or any",
       .aten = "aten::prod.dim_int",
       .onnx = "ReduceProd",
       .attributes = {shape},
       .infer = infer_reduce,
       .work = work_reduce,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[64, 1]}"},
      {.name = "variance",
       .doc = "variance over dimensions",
       .aten = "aten::var.correction",
       .onnx = "",
       .attributes = {shape},
       .infer = infer_reduce,
       .work = work_variance,
       .backward = backward_variance,
       .autocast = AutocastClass::kFp32,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[64, 1]}"},
      {.name = "argmax",
       .doc = "position of the maximum or minimum over dimensions",
       .aten = "aten::argmax",
       .onnx = "ArgMax",
       .attributes = {shape},
       .infer = infer_argmax,
       .work = work_reduce,
       .operands = reduce_operands,
       .example = "x: fp32[64, 256] {shape=[64, 1]}"},
      {.name = "item",
       .doc = "a number that the host reads",
       .aten = "aten::_local_scalar_dense",
       .onnx = "",
       .infer = infer_same,
       .work = work_item,
       .example = "x: fp32[1]"},
  };
}

}  // namespace tilecast
