// Operators that move or reinterpret data: views launch nothing, gathers and concatenations copy.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"
#include "ops/promotion.h"

namespace tilecast {
namespace {

Kernel memory_kernel(DType dtype, int64_t elements, int64_t read_bytes, int64_t write_bytes) {
  return {.shape = Stream{.elements = elements},
          .dtype = dtype,
          .read_bytes = read_bytes,
          .write_bytes = write_bytes};
}

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
  g.give(node.inputs[0], g.op("view", {dy}, {{"shape", g.tensor(node.inputs[0]).shape}}));
}

std::vector<TensorSpec> infer_transpose(const OpContext& context) {
  const Tensor& x = context.input(0);
  const std::vector<int64_t>& order = context.attribute<Shape>("order");
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == x.shape.size();
  for (size_t i = 0; valid && i < sorted.size(); ++i) valid = sorted[i] == static_cast<int64_t>(i);
  if (!valid)
    context.fail(fmt::format("order [{}] is no permutation of the dimensions of {}",
                             fmt::join(order, ", "), format_shape(x.shape)));
  TensorSpec spec{.dtype = x.dtype, .contiguous = false, .view = true};
  // Dimensions of size 1 do not count: moving only them keeps the layout dense.
  int64_t previous = -1;
  bool dense = true;
  for (int64_t dimension : order) {
    spec.shape.push_back(x.shape[static_cast<size_t>(dimension)]);
    if (spec.shape.back() == 1) continue;
    dense = dense && dimension > previous;
    previous = dimension;
  }
  // A second transposition is taken to undo the first, which is what models do.
  spec.contiguous = x.contiguous ? dense : !dense;
  return {spec};
}

void backward_transpose(GradientBuilder& g, const Node& node) {
  const std::vector<int64_t>& order = attribute<Shape>(node, "order");
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  g.give(node.inputs[0], g.op("transpose", {g.gradient(node.outputs[0])}, {{"order", inverse}}));
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
  // Dense, so that a kernel that reads it writes a dense output; its own bytes stay those of x.
  return {{.shape = shape, .dtype = x.dtype, .contiguous = false, .view = true}};
}

void backward_expand(GradientBuilder& g, const Node& node) {
  g.give(node.inputs[0], g.reduce_to(g.gradient(node.outputs[0]), node.inputs[0]));
}

// split: equal parts of one dimension, as views.
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

/// Gradients of the parts are joined by one kernel.
void backward_split(GradientBuilder& g, const Node& node) {
  std::vector<TensorId> parts;
  for (TensorId output : node.outputs) {
    if (g.gradient(output) >= 0) parts.push_back(g.gradient(output));
  }
  if (parts.empty()) return;
  while (parts.size() < node.outputs.size()) {
    // A part without a gradient counts as zeros, which autograd fills first.
    parts.push_back(g.op("fill", {parts.front()}));
  }
  const int64_t last = static_cast<int64_t>(g.tensor(node.inputs[0]).shape.size()) - 1;
  g.give(node.inputs[0], g.op("cat", parts, {{"dim", integer_or(node, "dim", last)}}));
}

// slice_columns and slice_rows: some of the last or first dimension, as a view; which ones makes no
// difference.
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

/// autograd fills zeros and copies the part in: one more pass over the whole.
void backward_slice_columns(GradientBuilder& g, const Node& node) {
  const int64_t all = g.tensor(node.inputs[0]).shape.back();
  const int64_t part = g.tensor(node.outputs[0]).shape.back();
  const TensorId dy = g.gradient(node.outputs[0]);
  g.give(node.inputs[0], all == part ? dy : g.op("pad_columns", {dy}, {{"columns", all - part}}));
}

// pad_columns: rows with further columns, copied there or zero.
std::vector<TensorSpec> infer_pad_columns(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  const int64_t count = context.integer("columns");
  if (spec.shape.empty()) context.fail("expected rows, found a scalar");
  spec.shape.back() = checked_add(spec.shape.back(), count);
  return {spec};
}

void backward_pad_columns(GradientBuilder& g, const Node& node) {
  g.give(node.inputs[0], g.op("slice_columns", {g.gradient(node.outputs[0])},
                              {{"columns", g.tensor(node.inputs[0]).shape.back()}}));
}

std::vector<TensorSpec> infer_cat(const OpContext& context) {
  Shape shape = context.input(0).shape;
  const int64_t dim = context.integer("dim");
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
    context.fail(fmt::format("no dimension {} in {}", dim, format_shape(shape)));
  const auto d = static_cast<size_t>(dim);
  for (size_t i = 1; i < context.input_count(); ++i) {
    Shape other = context.input(i).shape;
    if (other.size() != shape.size())
      context.fail(fmt::format("cannot join {} and {}", format_shape(shape), format_shape(other)));
    const int64_t length = other[d];
    other[d] = shape[d];
    if (other != shape)
      context.fail(fmt::format("cannot join {} and {} along dimension {}", format_shape(shape),
                               format_shape(context.input(i).shape), dim));
    shape[d] = checked_add(shape[d], length);
  }
  return {{.shape = shape, .dtype = promoted_dtype(context)}};
}

void work_cat(const OpContext& context, std::vector<Kernel>& kernels) {
  int64_t read = 0;
  for (size_t i = 0; i < context.input_count(); ++i)
    read = checked_add(read, tensor_bytes(context.input(i)));
  kernels.push_back(memory_kernel(context.output(0).dtype, element_count(context.output(0).shape),
                                  read, tensor_bytes(context.output(0))));
}

void backward_cat(GradientBuilder& g, const Node& node) {
  const int64_t dim = attribute<int64_t>(node, "dim");
  const auto parts = static_cast<int64_t>(node.inputs.size());
  const auto size = [&](TensorId id) { return g.tensor(id).shape[static_cast<size_t>(dim)]; };
  const bool alike = std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [&](TensorId id) { return size(id) == size(node.inputs[0]); });
  if (!alike) {
    for (TensorId id : node.inputs) {
      if (g.wants(id))
        g.give(id,
               g.op("slice", {g.gradient(node.outputs[0])}, {{"dim", dim}, {"count", size(id)}}));
    }
    return;
  }
  const std::vector<TensorId> grads =
      g.add("split", {g.gradient(node.outputs[0])}, {{"parts", parts}, {"dim", dim}});
  for (size_t i = 0; i < node.inputs.size(); ++i) g.give(node.inputs[i], grads[i]);
}

std::vector<TensorSpec> infer_same(const OpContext& context) {
  return {{.shape = context.input(0).shape, .dtype = context.input(0).dtype}};
}

void work_fill(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  kernels.push_back(memory_kernel(out.dtype, element_count(out.shape), 0, tensor_bytes(out)));
}

// empty: memory that other operators write into.
std::vector<TensorSpec> infer_empty(const OpContext& context) {
  return {{.shape = context.attribute<Shape>("shape"), .dtype = context.input(0).dtype}};
}

// join_rows: a buffer whose rows were written part by part.
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

// embedding: weight [rows, width], ids [...]: gathers rows.
std::vector<TensorSpec> infer_embedding(const OpContext& context) {
  const Tensor& weight = context.input(0);
  const Tensor& ids = context.input(1);
  if (weight.shape.size() != 2)
    context.fail("expected a weight of two dimensions, found " + format_shape(weight.shape));
  if (ids.dtype != DType::kInt64 && ids.dtype != DType::kInt32)
    context.fail(fmt::format("expected whole-number ids, found {}", dtype_name(ids.dtype)));
  TensorSpec spec{.shape = ids.shape, .dtype = weight.dtype};
  spec.shape.push_back(weight.shape[1]);
  return {spec};
}

void work_embedding(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  const int64_t bytes = tensor_bytes(out);
  kernels.push_back(memory_kernel(out.dtype, element_count(out.shape),
                                  checked_add(bytes, tensor_bytes(context.input(1))), bytes));
}

void backward_embedding(GradientBuilder& g, const Node& node) {
  const TensorId weight = node.inputs[0];
  if (!g.wants(weight)) return;
  g.give(weight, g.op("embedding_backward", {g.dense(g.gradient(node.outputs[0])), node.inputs[1]},
                      {{"shape", g.tensor(weight).shape}}));
}

std::vector<TensorSpec> infer_embedding_backward(const OpContext& context) {
  return {{.shape = context.attribute<Shape>("shape"), .dtype = context.input(0).dtype}};
}

/// Zeros for the whole table, a sort of the ids (keys and positions, four passes of eight bits
/// read and write both), then one addition per gathered row.
void work_embedding_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dy = context.input(0);
  const Tensor& out = context.output(0);
  const int64_t table = tensor_bytes(out);
  const int64_t rows = tensor_bytes(dy);
  const int64_t ids = tensor_bytes(context.input(1));
  kernels.push_back(memory_kernel(out.dtype, element_count(out.shape), 0, table));
  const int64_t sort = checked_multiply(ids, 8);
  kernels.push_back(
      memory_kernel(DType::kInt64, element_count(context.input(1).shape), sort, sort));
  kernels.push_back(
      memory_kernel(out.dtype, element_count(dy.shape), checked_multiply(rows, 2), rows));
  kernels.back().flops = element_count(dy.shape);
}

// gather_rows / scatter_rows: a share of a tensor's rows, picked by an index.
std::vector<TensorSpec> infer_gather_rows(const OpContext& context) {
  const Tensor& x = context.input(0);
  const int64_t rows = context.integer("rows");
  if (x.shape.size() < 2)
    context.fail(fmt::format("cannot pick {} rows of {}", rows, format_shape(x.shape)));
  return {{.shape = {rows, x.shape.back()}, .dtype = x.dtype}};
}

void work_gather_rows(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  const int64_t bytes = tensor_bytes(out);
  kernels.push_back(memory_kernel(out.dtype, element_count(out.shape), bytes, bytes));
}

/// Zeros of the source's size, then the rows are put back.
void backward_gather_rows(GradientBuilder& g, const Node& node) {
  const TensorId zeros = g.op("fill", {node.inputs[0]});
  g.give(node.inputs[0], g.op("scatter_rows", {zeros, g.gradient(node.outputs[0])}));
}

std::vector<TensorSpec> infer_scatter_rows(const OpContext& context) {
  if (context.input(0).shape.empty() || context.input(1).shape.empty() ||
      context.input(0).shape.back() != context.input(1).shape.back())
    context.fail(fmt::format("cannot put rows {} into {}", format_shape(context.input(1).shape),
                             format_shape(context.input(0).shape)));
  return {{.shape = context.input(0).shape, .dtype = context.input(0).dtype, .view = true}};
}

void work_scatter_rows(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& rows = context.input(1);
  const int64_t bytes = tensor_bytes(rows);
  kernels.push_back(memory_kernel(rows.dtype, element_count(rows.shape), bytes, bytes));
}

void backward_scatter_rows(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  g.give(node.inputs[0], dy);
  if (g.wants(node.inputs[1])) {
    // By value: adding nodes moves the vector that holds the tensors.
    const Shape rows = g.tensor(node.inputs[1]).shape;
    const int64_t count = element_count(rows) / std::max<int64_t>(1, rows.back());
    g.give(node.inputs[1],
           g.op("view", {g.op("gather_rows", {dy}, {{"rows", count}})}, {{"shape", rows}}));
  }
}

Operands cat_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.inputs.push_back(b.input("y", {s["rows"], s["columns"]}, s.dtype()));
  operands.attributes = {{"dim", 1}};
  return operands;
}

std::vector<SizeDef> embedding_sizes() {
  constexpr int kDrawnTable = 13;
  std::vector<SizeDef> sizes = row_sizes();
  sizes.push_back({.name = "table_rows",
                   .doc = "rows of the table, of which `rows` are picked",
                   .other_names = {"k"},
                   .drawn_bits = kDrawnTable});
  return sizes;
}

Operands embedding_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("w", {s["table_rows"], s["columns"]}, s.dtype()),
           b.input("i", {s["rows"]}, DType::kInt64)},
          {}};
}

Operands embedding_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("dy", {s["rows"], s["columns"]}, s.dtype()),
           b.input("i", {s["rows"]}, DType::kInt64)},
          {{"shape", Shape{s["table_rows"], s["columns"]}}}};
}

Operands gather_rows_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"rows", s["rows"]}};
  return operands;
}

std::vector<SizeDef> pad_columns_sizes() {
  std::vector<SizeDef> sizes = row_sizes();
  sizes.push_back({.name = "more_columns", .doc = "that are added", .other_names = {"k"}});
  return sizes;
}

Operands pad_columns_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"columns", s["more_columns"]}};
  return operands;
}

/// A required number of at least 1.
AttributeDef count(std::string_view name, std::string_view doc) {
  return {.name = name, .doc = doc, .required = true, .least = 1};
}

}  // namespace

std::vector<OpDef> movement_ops() {
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
       .example = "x: fp32[64, 256] {shape=[16384]}"},
      {.name = "transpose",
       .doc = "the same memory with its dimensions in another order; launches nothing",
       .aten = "aten::permute",
       .onnx = "Transpose",
       .attributes = {{.name = "order",
                       .doc = "which dimension comes at each place",
                       .type = AttributeType::kIntegers,
                       .required = true}},
       .infer = infer_transpose,
       .backward = backward_transpose,
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
       .attributes = {count("parts", "how many"),
                      {.name = "dim", .doc = "along which; default: the last"}},
       .infer = infer_split,
       .backward = backward_split,
       .example = "x: fp32[64, 256] {parts=2}"},
      {.name = "cat",
       .doc = "joins tensors along a dimension",
       .aten = "aten::cat",
       .onnx = "Concat",
       .max_inputs = 64,
       .attributes = {{.name = "dim", .doc = "along which", .required = true}},
       .infer = infer_cat,
       .work = work_cat,
       .backward = backward_cat,
       .operands = cat_operands,
       .example = "x: fp32[64, 256] y: fp32[64, 256] {dim=1}"},
      {.name = "fill",
       .doc = "a new tensor of the input's shape, all one value",
       .aten = "aten::zeros_like",
       .onnx = "ConstantOfShape",
       .infer = infer_same,
       .work = work_fill,
       .example = "x: fp32[64, 256]"},
      {.name = "empty",
       .doc = "memory of the input's type that later operators write into; launches nothing",
       .aten = "aten::empty.memory_format",
       .onnx = "",
       .attributes = {shape},
       .infer = infer_empty,
       .example = "x: fp32[64, 256] {shape=[64, 128]}"},
      {.name = "join_rows",
       .doc = "a buffer whose rows other operators have written, part by part; launches nothing",
       .aten = "aten::alias",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 64,
       .infer = infer_join_rows,
       .example = "x: fp32[64, 256] y: fp32[16, 256] z: fp32[48, 256]"},
      {.name = "embedding",
       .doc = "rows of a table, picked by ids",
       .aten = "aten::embedding",
       .onnx = "Gather",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_embedding,
       .work = work_embedding,
       .backward = backward_embedding,
       .sizes = embedding_sizes(),
       .operands = embedding_operands,
       .random_sizes = RandomSizes{.in_training = true},
       .example = "w: fp32[1000, 64] i: int64[4, 16]"},
      {.name = "embedding_backward",
       .doc = "dense gradient of an embedding table",
       .aten = "aten::embedding_dense_backward",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {shape},
       .infer = infer_embedding_backward,
       .work = work_embedding_backward,
       .sizes = embedding_sizes(),
       .operands = embedding_backward_operands,
       .example = "x: fp32[4, 16, 64] i: int64[4, 16] {shape=[1000, 64]}"},
      {.name = "slice_columns",
       .doc = "some columns of the last dimension, a view",
       .aten = "aten::slice.Tensor",
       .onnx = "Slice",
       .attributes = {count("columns", "how many")},
       .infer = infer_slice_columns,
       .backward = backward_slice_columns,
       .example = "x: fp32[64, 256] {columns=128}"},
      {.name = "slice",
       .doc = "part of one dimension, a view",
       .aten = "aten::slice.Tensor",
       .onnx = "Slice",
       .attributes = {{.name = "dim", .doc = "which", .required = true},
                      count("count", "how much of it")},
       .infer = infer_slice_dim,
       .example = "x: fp32[64, 256] {dim=1, count=32}"},
      {.name = "slice_rows",
       .doc = "some rows of the first dimension, a view",
       .aten = "aten::slice.Tensor",
       .onnx = "Slice",
       .attributes = {count("rows", "how many")},
       .infer = infer_slice_rows,
       .example = "x: fp32[64, 256] {rows=32}"},
      {.name = "pad_columns",
       .doc = "rows with further columns beside them",
       .aten = "aten::constant_pad_nd",
       .onnx = "Pad",
       .attributes = {count("columns", "how many more")},
       .infer = infer_pad_columns,
       .work = work_cat,
       .backward = backward_pad_columns,
       .sizes = pad_columns_sizes(),
       .operands = pad_columns_operands,
       .example = "x: fp32[64, 256] {columns=64}"},
      {.name = "gather_rows",
       .doc = "picks rows by an index (tokens of an expert)",
       .aten = "aten::index",
       .onnx = "GatherND",
       .attributes = {{.name = "rows", .doc = "how many", .required = true}},
       .infer = infer_gather_rows,
       .work = work_gather_rows,
       .backward = backward_gather_rows,
       .operands = gather_rows_operands,
       .example = "x: fp32[64, 256] {rows=16}"},
      {.name = "scatter_rows",
       .doc = "puts rows back in place by an index",
       .aten = "aten::index_put_",
       .onnx = "ScatterND",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_scatter_rows,
       .work = work_scatter_rows,
       .backward = backward_scatter_rows,
       .example = "x: fp32[64, 256] y: fp32[16, 256]"},
  };
}

}  // namespace tilecast
