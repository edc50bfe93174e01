// Gathers single elements of rows by an index.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

// gather: x [..., n] and an index [..., t] of the same rows, or of one row for all.
std::vector<TensorSpec> infer_gather(const OpContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& index = context.input(1);
  Shape shape = x.shape;
  if (shape.empty() || index.shape.size() != shape.size())
    context.fail(fmt::format("expected x [..., n] and an index [..., t], found {} and {}",
                             format_shape(x.shape), format_shape(index.shape)));
  shape.back() = index.shape.back();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (index.shape[d] != shape[d] && index.shape[d] != 1)
      context.fail(fmt::format("an index {} does not fit rows of {}", format_shape(index.shape),
                               format_shape(x.shape)));
  }
  if (index.dtype != DType::kInt64)
    context.fail(fmt::format("expected an int64 index, found {}", dtype_name(index.dtype)));
  return {{.shape = shape, .dtype = x.dtype}};
}

/// Reads one element and one index for each result.
void work_gather(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  kernels.push_back({.shape = Stream{.elements = element_count(y.shape)},
                     .dtype = y.dtype,
                     .read_bytes = checked_add(tensor_bytes(y), tensor_bytes(context.input(1))),
                     .write_bytes = tensor_bytes(y)});
}

void backward_gather_columns(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op("gather_backward", {g.dense(g.gradient(node.outputs[0])),
                                                          node.inputs[0], node.inputs[1]}));
}

std::vector<TensorSpec> infer_gather_backward(const OpContext& context) {
  return {{.shape = context.input(1).shape, .dtype = context.input(0).dtype}};
}

/// Fills zeros of x's shape, then adds each element of the gradient to its place.
void work_gather_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dy = context.input(0);
  const Tensor& dx = context.output(0);
  const int64_t bytes = tensor_bytes(dy);
  kernels.push_back({.shape = Stream{.elements = element_count(dx.shape)},
                     .dtype = dx.dtype,
                     .write_bytes = tensor_bytes(dx)});
  kernels.push_back(
      {.shape = Stream{.elements = element_count(dy.shape)},
       .dtype = dx.dtype,
       .flops = element_count(dy.shape),
       .read_bytes = checked_add(checked_multiply(bytes, 2), tensor_bytes(context.input(2))),
       .write_bytes = bytes});
}

std::vector<SizeDef> gather_sizes() {
  std::vector<SizeDef> sizes = row_sizes();
  sizes.push_back({.name = "selected", .doc = "elements of each row", .other_names = {"k"}});
  return sizes;
}

Operands gather_columns_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype()),
           b.input("i", {s["rows"], s["selected"]}, DType::kInt64)},
          {}};
}

Operands gather_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = gather_columns_operands(b, s);
  operands.inputs.insert(operands.inputs.begin(),
                         b.input("dy", {s["rows"], s["selected"]}, s.dtype()));
  return operands;
}

}  // namespace

std::vector<OpDef> gather_ops() {
  return {{.name = "gather",
           .doc = "elements of rows, selected by an index of each row",
           .aten = "aten::gather",
           .onnx = "GatherElements",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_gather,
           .work = work_gather,
           .backward = backward_gather_columns,
           .sizes = gather_sizes(),
           .operands = gather_columns_operands,
           .example = "x: fp32[64, 256] i: int64[64, 16]"},
          {.name = "gather_backward",
           .doc = "gradient of gather's first input, from dy, x and the index",
           .aten = "aten::gather_backward",
           .onnx = "",
           .min_inputs = 3,
           .max_inputs = 3,
           .infer = infer_gather_backward,
           .work = work_gather_backward,
           .sizes = gather_sizes(),
           .operands = gather_backward_operands,
           .example = "dy: fp32[64, 16] x: fp32[64, 256] i: int64[64, 16]"}};
}

}  // namespace tilecast
