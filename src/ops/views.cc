// Operators that reinterpret memory and launch no kernel.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

std::vector<TensorSpec> infer_view(const OpContext& context) {
  const Tensor& x = context.input(0);
  const Shape& shape = context.attribute<Shape>("shape");
  if (element_count(shape) != element_count(x.shape))
    context.fail(fmt::format("cannot view {} as {}: the number of elements differs",
                             format_shape(x.shape), format_shape(shape)));
  return {{.shape = shape, .dtype = x.dtype, .contiguous = x.contiguous, .view = true}};
}

void backward_view(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  g.add_gradient(node.inputs[0], g.op("view", {dy}, {{"shape", g.tensor(node.inputs[0]).shape}}));
}

std::vector<TensorSpec> infer_transpose(const OpContext& context) {
  const Tensor& x = context.input(0);
  const std::vector<int64_t>& order = context.attribute<Shape>("order");
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == x.shape.size();
  for (size_t i = 0; valid && i < sorted.size(); ++i) valid = sorted[i] == static_cast<int64_t>(i);
  if (!valid)
    context.fail(fmt::format("order [{}] is not a permutation of the dimensions of {}",
                             fmt::join(order, ", "), format_shape(x.shape)));
  TensorSpec spec{.dtype = x.dtype, .contiguous = false, .view = true};
  // Moving dimensions of size 1 keeps the layout dense.
  int64_t previous = -1;
  bool dense = true;
  for (int64_t dimension : order) {
    spec.shape.push_back(x.shape[static_cast<size_t>(dimension)]);
    if (spec.shape.back() == 1) continue;
    dense = dense && dimension > previous;
    previous = dimension;
  }
  // A second transposition is assumed to undo the first, as in the models that we know.
  spec.contiguous = x.contiguous ? dense : !dense;
  return {spec};
}

void backward_transpose(GradientBuilder& g, const Node& node) {
  const std::vector<int64_t>& order = attribute<Shape>(node, "order");
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  g.add_gradient(node.inputs[0],
                 g.op("transpose", {g.gradient(node.outputs[0])}, {{"order", inverse}}));
}

std::vector<TensorSpec> infer_expand(const OpContext& context) {
  const Tensor& x = context.input(0);
  const Shape& shape = context.attribute<Shape>("shape");
  bool fits = shape.size() >= x.shape.size();
  const size_t offset = fits ? shape.size() - x.shape.size() : 0;
  for (size_t i = 0; fits && i < x.shape.size(); ++i)
    fits = x.shape[i] == 1 || x.shape[i] == shape[offset + i];
  if (!fits)
    context.fail(fmt::format("cannot expand {} to {}", format_shape(x.shape), format_shape(shape)));
  // A view of x: several elements share one in memory, so it is not contiguous.
  return {{.shape = shape, .dtype = x.dtype, .contiguous = false, .view = true}};
}

void backward_expand(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.reduce_to(g.gradient(node.outputs[0]), node.inputs[0]));
}

// split: divides one dimension into equal parts, as views.
std::vector<TensorSpec> infer_split(const OpContext& context) {
  const Tensor& x = context.input(0);
  const int64_t parts = context.integer("parts");
  const int64_t dim = integer_or(context.node, "dim", static_cast<int64_t>(x.shape.size()) - 1);
  if (dim < 0 || dim >= static_cast<int64_t>(x.shape.size()) || parts > 64 ||
      x.shape[static_cast<size_t>(dim)] % parts != 0)
    context.fail(fmt::format("cannot split dimension {} of {} into {} parts", dim,
                             format_shape(x.shape), parts));
  TensorSpec part{.shape = x.shape, .dtype = x.dtype, .contiguous = false, .view = true};
  part.shape[static_cast<size_t>(dim)] /= parts;
  return std::vector<TensorSpec>(static_cast<size_t>(parts), part);
}

/// One kernel concatenates the gradients of the parts.
void backward_split(GradientBuilder& g, const Node& node) {
  std::vector<TensorId> parts;
  for (TensorId output : node.outputs) {
    if (g.gradient(output) >= 0) parts.push_back(g.gradient(output));
  }
  if (parts.empty()) return;
  while (parts.size() < node.outputs.size()) {
    // For a part without a gradient, autograd first fills a tensor with zeros.
    parts.push_back(g.op("fill", {parts.front()}));
  }
  const int64_t last = static_cast<int64_t>(g.tensor(node.inputs[0]).shape.size()) - 1;
  g.add_gradient(node.inputs[0], g.op("cat", parts, {{"dim", integer_or(node, "dim", last)}}));
}

// slice_columns and slice_rows: a part of the last or first dimension, as a view. The position of
// the part has no effect on times.
std::vector<TensorSpec> infer_slice(const OpContext& context, std::string_view attribute,
                                    bool columns) {
  const Tensor& x = context.input(0);
  const int64_t count = context.integer(attribute);
  if (x.shape.empty()) context.fail("a scalar has nothing to slice");
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype, .contiguous = false, .view = true};
  int64_t& size = columns ? spec.shape.back() : spec.shape.front();
  if (count > size)
    context.fail(fmt::format("cannot take {} {} of {}", count, attribute, format_shape(x.shape)));
  spec.contiguous = x.contiguous && (!columns || count == size);
  size = count;
  return {spec};
}

std::vector<TensorSpec> infer_slice_columns(const OpContext& context) {
  return infer_slice(context, "columns", true);
}

std::vector<TensorSpec> infer_slice_dim(const OpContext& context) {
  const Tensor& x = context.input(0);
  const int64_t dim = context.integer("dim");
  const int64_t count = context.integer("count");
  if (dim < 0 || dim >= static_cast<int64_t>(x.shape.size()) ||
      count > x.shape[static_cast<size_t>(dim)])
    context.fail(
        fmt::format("cannot take {} of dimension {} of {}", count, dim, format_shape(x.shape)));
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype, .contiguous = false, .view = true};
  spec.shape[static_cast<size_t>(dim)] = count;
  return {spec};
}

std::vector<TensorSpec> infer_slice_rows(const OpContext& context) {
  return infer_slice(context, "rows", false);
}

/// autograd fills the whole tensor with zeros and copies the part into it.
void backward_slice_columns(GradientBuilder& g, const Node& node) {
  const int64_t all = g.tensor(node.inputs[0]).shape.back();
  const int64_t part = g.tensor(node.outputs[0]).shape.back();
  const TensorId dy = g.gradient(node.outputs[0]);
  g.add_gradient(node.inputs[0],
                 all == part ? dy : g.op("pad_columns", {dy}, {{"columns", all - part}}));
}

void backward_slice_dim(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0],
                 g.op("slice_backward", {g.gradient(node.outputs[0]), node.inputs[0]}));
}

std::vector<TensorSpec> infer_slice_backward(const OpContext& context) {
  if (context.input(0).shape.size() != context.input(1).shape.size())
    context.fail(fmt::format("{} is no part of {}", format_shape(context.input(0).shape),
                             format_shape(context.input(1).shape)));
  return {{.shape = context.input(1).shape, .dtype = context.input(0).dtype}};
}

/// Fills the whole tensor with zeros, then copies the part into it.
void work_slice_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dy = context.input(0);
  const Tensor& dx = context.output(0);
  kernels.push_back({.shape = Stream{.elements = element_count(dx.shape)},
                     .dtype = dx.dtype,
                     .write_bytes = tensor_bytes(dx)});
  kernels.push_back({.shape = Stream{.elements = element_count(dy.shape)},
                     .dtype = dx.dtype,
                     .read_bytes = tensor_bytes(dy),
                     .write_bytes = tensor_bytes(dy)});
}

// empty: uninitialized memory that other operators write to.
std::vector<TensorSpec> infer_empty(const OpContext& context) {
  return {{.shape = context.attribute<Shape>("shape"), .dtype = context.input(0).dtype}};
}

// join_rows: a buffer after kernels have written parts of its rows.
std::vector<TensorSpec> infer_join_rows(const OpContext& context) {
  const Tensor& buffer = context.input(0);
  if (buffer.shape.empty()) context.fail("a scalar has no rows");
  Shape parts = buffer.shape;
  parts[0] = 0;
  for (size_t i = 1; i < context.input_count(); ++i) {
    Shape part = context.input(i).shape;
    const int64_t rows = part.empty() ? 0 : part[0];
    if (!part.empty()) part[0] = buffer.shape[0];
    if (part != buffer.shape)
      context.fail(fmt::format("{} are no rows of {}", format_shape(context.input(i).shape),
                               format_shape(buffer.shape)));
    parts[0] = checked_add(parts[0], rows);
  }
  if (parts != buffer.shape)
    context.fail(fmt::format("the parts have {} rows, the buffer {}", parts[0], buffer.shape[0]));
  return {{.shape = buffer.shape, .dtype = buffer.dtype, .view = true}};
}

// keep: variables of the model's code hold all inputs but the first until it is computed.
std::vector<TensorSpec> infer_keep(const OpContext& context) {
  const Tensor& x = context.input(0);
  return {{.shape = x.shape, .dtype = x.dtype, .contiguous = x.contiguous, .view = true}};
}

void backward_keep(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.gradient(node.outputs[0]));
}

}  // namespace

std::vector<OpDef> view_ops() {  // NOLINT(readability-function-size): a table
  const AttributeDef shape{.name = "shape",
                           .doc = "the shape of the output",
                           .type = AttributeType::kIntegers,
                           .required = true};
  return {
      {.name = "view",
       .doc = "the same memory in another shape; launches nothing",
       .aten = "aten::view",
       .onnx = "Reshape",
       .attributes = {shape},
       .infer = infer_view,
       .backward = backward_view,
       .shard = shard_view,
       .example = "x: fp32[64, 256] {shape=[16384]}"},
      {.name = "transpose",
       .doc = "the same memory with its dimensions in another order; launches nothing",
       .aten = "aten::permute",
       .onnx = "Transpose",
       .attributes = {{.name = "order",
                       .doc = "the input's dimension at each position",
                       .type = AttributeType::kIntegers,
                       .required = true}},
       .infer = infer_transpose,
       .backward = backward_transpose,
       .shard = shard_transpose,
       .example = "x: fp32[4, 64, 256] {order=[0, 2, 1]}"},
      {.name = "expand",
       .doc = "repeats dimensions of size 1 without copying; launches nothing",
       .aten = "aten::expand",
       .onnx = "Expand",
       .attributes = {shape},
       .infer = infer_expand,
       .backward = backward_expand,
       .example = "x: fp32[64, 1] {shape=[64, 256]}"},
      {.name = "split",
       .doc = "equal parts along a dimension, as views; launches nothing",
       .aten = "aten::split",
       .onnx = "Split",
       .attributes = {count_attribute("parts", "how many"),
                      {.name = "dim", .doc = "dimension to split; default: the last"}},
       .infer = infer_split,
       .backward = backward_split,
       .shard = shard_like_first,
       .example = "x: fp32[64, 256] {parts=2}"},
      {.name = "empty",
       .doc = "uninitialized memory of the input's dtype; launches nothing",
       .aten = "aten::empty.memory_format",
       .onnx = "",
       .attributes = {shape},
       .infer = infer_empty,
       .example = "x: fp32[64, 256] {shape=[64, 128]}"},
      {.name = "join_rows",
       .doc = "a buffer whose rows other operators have written; launches nothing",
       .aten = "aten::alias",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 64,
       .infer = infer_join_rows,
       .example = "x: fp32[64, 256] y: fp32[16, 256] z: fp32[48, 256]"},
      {.name = "keep",
       .doc = "the first input; variables of the model's code hold the others, which get no "
              "gradient, until here; launches nothing",
       .aten = "aten::alias",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 8,
       .infer = infer_keep,
       .backward = backward_keep,
       .shard = shard_like_first,
       .example = "x: fp32[64, 256] y: fp16[64, 256]"},
      {.name = "slice_columns",
       .doc = "some columns of the last dimension, a view",
       .aten = "aten::slice.Tensor",
       .onnx = "Slice",
       .attributes = {count_attribute("columns", "how many")},
       .infer = infer_slice_columns,
       .backward = backward_slice_columns,
       .shard = shard_slice_columns,
       .example = "x: fp32[64, 256] {columns=128}"},
      {.name = "slice",
       .doc = "part of one dimension, a view",
       .aten = "aten::slice.Tensor",
       .onnx = "Slice",
       .attributes = {{.name = "dim", .doc = "which", .required = true},
                      count_attribute("count", "length of the part")},
       .infer = infer_slice_dim,
       .backward = backward_slice_dim,
       .example = "x: fp32[64, 256] {dim=1, count=32}"},
      {.name = "slice_backward",
       .doc = "gradient of the tensor that `slice` reads, from dy and the tensor",
       .aten = "aten::slice_backward",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_slice_backward,
       .work = work_slice_backward,
       .example = "dy: fp32[64, 32] x: fp32[64, 256]"},
      {.name = "slice_rows",
       .doc = "some rows of the first dimension, a view",
       .aten = "aten::slice.Tensor",
       .onnx = "Slice",
       .attributes = {count_attribute("rows", "how many")},
       .infer = infer_slice_rows,
       .example = "x: fp32[64, 256] {rows=32}"},
  };
}

}  // namespace tilecast
