// Operators that move data: gathers, scatters, concatenations, copies.

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

// pad_columns: appends columns to each row, as PyTorch's cat or pad does.
std::vector<TensorSpec> infer_pad_columns(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  const int64_t count = context.integer("columns");
  if (spec.shape.empty()) context.fail("expected rows, found a scalar");
  spec.shape.back() = checked_add(spec.shape.back(), count);
  return {spec};
}

void backward_pad_columns(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op("slice_columns", {g.gradient(node.outputs[0])},
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
      if (g.requires_grad(id))
        g.add_gradient(
            id, g.op("slice", {g.gradient(node.outputs[0])}, {{"dim", dim}, {"count", size(id)}}));
    }
    return;
  }
  const std::vector<TensorId> grads =
      g.add("split", {g.gradient(node.outputs[0])}, {{"parts", parts}, {"dim", dim}});
  for (size_t i = 0; i < node.inputs.size(); ++i) g.add_gradient(node.inputs[i], grads[i]);
}

void work_fill(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  kernels.push_back(memory_kernel(out.dtype, element_count(out.shape), 0, tensor_bytes(out)));
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
  if (!g.requires_grad(weight)) return;
  g.add_gradient(weight,
                 g.op("embedding_backward", {g.dense(g.gradient(node.outputs[0])), node.inputs[1]},
                      {{"shape", g.tensor(weight).shape}}));
}

std::vector<TensorSpec> infer_embedding_backward(const OpContext& context) {
  return {{.shape = context.attribute<Shape>("shape"), .dtype = context.input(0).dtype}};
}

/// Fills the table's gradient with zeros, sorts the ids (four radix passes of eight bits, each of
/// which reads and writes keys and positions), then adds one row per id.
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

// gather_rows / scatter_rows: some rows of a tensor, selected by an index.
std::vector<TensorSpec> infer_gather_rows(const OpContext& context) {
  const Tensor& x = context.input(0);
  const int64_t rows = context.integer("rows");
  if (x.shape.size() < 2)
    context.fail(fmt::format("cannot select {} rows of {}", rows, format_shape(x.shape)));
  return {{.shape = {rows, x.shape.back()}, .dtype = x.dtype}};
}

void work_gather_rows(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  const int64_t bytes = tensor_bytes(out);
  kernels.push_back(memory_kernel(out.dtype, element_count(out.shape), bytes, bytes));
}

/// Fills zeros of the source's shape, then writes the rows back.
void backward_gather_rows(GradientBuilder& g, const Node& node) {
  const TensorId zeros = g.op("fill", {node.inputs[0]});
  g.add_gradient(node.inputs[0], g.op("scatter_rows", {zeros, g.gradient(node.outputs[0])}));
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
  g.add_gradient(node.inputs[0], dy);
  if (g.requires_grad(node.inputs[1])) {
    // A copy: adding nodes may move the tensors.
    const Shape rows = g.tensor(node.inputs[1]).shape;
    const int64_t count = element_count(rows) / std::max<int64_t>(1, rows.back());
    g.add_gradient(node.inputs[1],
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
                   .doc = "rows of the table; `rows` of them are selected",
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

}  // namespace

std::vector<OpDef> movement_ops() {  // NOLINT(readability-function-size): a table
  const AttributeDef shape{.name = "shape",
                           .doc = "the shape of the output",
                           .type = AttributeType::kIntegers,
                           .required = true};
  return {
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
       .doc = "a new tensor of the input's shape, filled with one value",
       .aten = "aten::zeros_like",
       .onnx = "ConstantOfShape",
       .infer = infer_same,
       .work = work_fill,
       .example = "x: fp32[64, 256]"},
      {.name = "embedding",
       .doc = "rows of a table, selected by ids",
       .aten = "aten::embedding",
       .onnx = "Gather",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {flag_attribute("inner",
                                     "1: the rows are a variable of a module of "
                                     "embeddings and end with it, not with a layer")},
       .infer = infer_embedding,
       .work = work_embedding,
       .backward = backward_embedding,
       .sizes = embedding_sizes(),
       .operands = embedding_operands,
       .random_sizes = RandomSizes{.in_training = true},
       .shard = shard_embedding,
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
      {.name = "pad_columns",
       .doc = "appends columns to each row",
       .aten = "aten::constant_pad_nd",
       .onnx = "Pad",
       .attributes = {count_attribute("columns", "how many more")},
       .infer = infer_pad_columns,
       .work = work_cat,
       .backward = backward_pad_columns,
       .sizes = pad_columns_sizes(),
       .operands = pad_columns_operands,
       .example = "x: fp32[64, 256] {columns=64}"},
      {.name = "gather_rows",
       .doc = "gathers rows by an index (tokens of an expert)",
       .aten = "aten::index",
       .onnx = "GatherND",
       .attributes = {{.name = "rows", .doc = "how many", .required = true}},
       .infer = infer_gather_rows,
       .work = work_gather_rows,
       .backward = backward_gather_rows,
       .operands = gather_rows_operands,
       .example = "x: fp32[64, 256] {rows=16}"},
      {.name = "scatter_rows",
       .doc = "scatters rows by an index",
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
