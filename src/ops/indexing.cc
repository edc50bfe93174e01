// Operators that read or write elements at positions that a tensor holds: index, gather, scatter,
// one-hot, and those that return positions: top-k and sort.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

void expect_index(const OpContext& context, const Tensor& index) {
  const bool whole = index.dtype == DType::kInt64 || index.dtype == DType::kInt32 ||
                     index.dtype == DType::kBool || index.dtype == DType::kInt8;
  if (!whole)
    context.fail(
        fmt::format("expected an index of whole numbers, found {}", dtype_name(index.dtype)));
}

size_t dimension(const OpContext& context, const Shape& shape) {
  const int64_t dim = context.integer("dim");
  if (dim >= static_cast<int64_t>(shape.size()))
    context.fail(fmt::format("no dimension {} in {}", dim, format_shape(shape)));
  return static_cast<size_t>(dim);
}

AttributeDef dim_attribute(std::string_view doc) {
  return {.name = "dim", .doc = doc, .default_value = int64_t{0}};
}

// index_select: whole slices of a dimension, which the index replaces by its own dimensions.
std::vector<TensorSpec> infer_index_select(const OpContext& context) {
  const Shape& x = context.input(0).shape;
  const Shape& index = context.input(1).shape;
  expect_index(context, context.input(1));
  const auto dim = static_cast<std::ptrdiff_t>(dimension(context, x));
  Shape shape(x.begin(), x.begin() + dim);
  shape.insert(shape.end(), index.begin(), index.end());
  shape.insert(shape.end(), x.begin() + dim + 1, x.end());
  return {{.shape = shape, .dtype = context.input(0).dtype}};
}

/// Reads one element for each result, and the indices.
void work_index(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  int64_t read = tensor_bytes(y);
  for (size_t i = 1; i < context.input_count(); ++i)
    read = checked_add(read, tensor_bytes(context.input(i)));
  kernels.push_back({.shape = Stream{.elements = element_count(y.shape)},
                     .dtype = y.dtype,
                     .read_bytes = read,
                     .write_bytes = tensor_bytes(y)});
}

/// Zeros of x's shape, to whose elements the gradients are added.
void backward_index(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op("gather_backward", {g.dense(g.gradient(node.outputs[0])),
                                                          node.inputs[0], node.inputs[1]}));
}

// gather_elements: along one dimension, an index of the result's shape.
std::vector<TensorSpec> infer_gather_elements(const OpContext& context) {
  const Shape& x = context.input(0).shape;
  const Shape& index = context.input(1).shape;
  expect_index(context, context.input(1));
  const size_t dim = dimension(context, x);
  bool fits = index.size() == x.size();
  for (size_t d = 0; fits && d < x.size(); ++d) fits = d == dim || index[d] <= x[d];
  if (!fits)
    context.fail(fmt::format("an index {} does not fit {}", format_shape(index), format_shape(x)));
  return {{.shape = index, .dtype = context.input(0).dtype}};
}

// index: elements or slices at positions that several tensors, or rows of one, hold.
std::vector<TensorSpec> infer_index(const OpContext& context) {
  for (size_t i = 1; i < context.input_count(); ++i) expect_index(context, context.input(i));
  return {{.shape = context.attribute<Shape>("shape"), .dtype = context.input(0).dtype}};
}

// scatter: a copy of x with other elements at some positions.
std::vector<TensorSpec> infer_scatter(const OpContext& context) {
  expect_index(context, context.input(1));
  const Tensor& x = context.input(0);
  if (element_count(context.input(2).shape) > element_count(x.shape) &&
      context.attribute<std::string>("reduce") == "none")
    context.fail(fmt::format("{} does not fit into {}", format_shape(context.input(2).shape),
                             format_shape(x.shape)));
  return {{.shape = x.shape, .dtype = x.dtype, .view = context.integer("in_place") != 0}};
}

/// Copies x unless it works in place, then writes the updates.
void work_scatter(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  const Tensor& updates = context.input(2);
  if (context.integer("in_place") == 0)
    kernels.push_back({.shape = Stream{.elements = element_count(x.shape)},
                       .dtype = x.dtype,
                       .read_bytes = tensor_bytes(x),
                       .write_bytes = tensor_bytes(x)});
  const bool sums = context.attribute<std::string>("reduce") != "none";
  const int64_t bytes = tensor_bytes(updates);
  kernels.push_back({.shape = Stream{.elements = element_count(updates.shape)},
                     .dtype = x.dtype,
                     .flops = sums ? element_count(updates.shape) : 0,
                     .read_bytes = checked_add(checked_multiply(bytes, sums ? 2 : 1),
                                               tensor_bytes(context.input(1))),
                     .write_bytes = bytes});
}

/// x's gradient is dy, with zeros where elements were replaced; that of the updates is read from
/// their positions.
void backward_scatter_elements(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const TensorId index = node.inputs[1], updates = node.inputs[2];
  if (g.requires_grad(node.inputs[0])) {
    const bool sums = attribute<std::string>(node, "reduce") != "none";
    g.add_gradient(node.inputs[0],
                   sums ? dy : g.op("scatter", {dy, index, g.op("fill", {updates})}));
  }
  if (g.requires_grad(updates))
    g.add_gradient(updates, g.op("index", {dy, index}, {{"shape", g.tensor(updates).shape}}));
}

// one_hot: a number for each class, one of them 1.
std::vector<TensorSpec> infer_one_hot(const OpContext& context) {
  expect_index(context, context.input(0));
  Shape shape = context.input(0).shape;
  shape.push_back(context.integer("classes"));
  return {{.shape = shape, .dtype = context.attribute<DType>("dtype")}};
}

/// Zeros, then a 1 for each index.
void work_one_hot(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  const int64_t rows = element_count(context.input(0).shape);
  kernels.push_back({.shape = Stream{.elements = element_count(y.shape)},
                     .dtype = y.dtype,
                     .write_bytes = tensor_bytes(y)});
  kernels.push_back({.shape = Stream{.elements = rows},
                     .dtype = y.dtype,
                     .read_bytes = tensor_bytes(context.input(0)),
                     .write_bytes = std::max<int64_t>(
                         1, checked_multiply(rows, dtype_bits(y.dtype)) / kBitsPerByte)});
}

// top_k and sort: values and their positions.
std::vector<TensorSpec> values_and_positions(const Tensor& x, const Shape& shape) {
  return {{.shape = shape, .dtype = x.dtype}, {.shape = shape, .dtype = DType::kInt64}};
}

std::vector<TensorSpec> infer_top_k(const OpContext& context) {
  const Tensor& x = context.input(0);
  Shape shape = x.shape;
  int64_t& size = shape[dimension(context, x.shape)];
  const int64_t k = context.integer("k");
  if (k > size) context.fail(fmt::format("the {} largest of {}", k, format_shape(x.shape)));
  size = k;
  return values_and_positions(x, shape);
}

/// PyTorch selects by radix, two bits at a time (SortingRadixSelect.cuh: RADIX_BITS = 2): each pass
/// compares every element. Passes after the first read from the cache.
void work_top_k(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  const int64_t elements = element_count(x.shape);
  const int64_t row = std::max<int64_t>(1, x.shape[dimension(context, x.shape)]);
  constexpr int64_t kRadixBits = 2;
  Kernel kernel{.shape = Stream{elements / row, row}, .dtype = x.dtype};
  kernel.flops = checked_multiply(elements, std::max<int64_t>(1, dtype_bits(x.dtype) / kRadixBits));
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

std::vector<TensorSpec> infer_sort(const OpContext& context) {
  const Tensor& x = context.input(0);
  dimension(context, x.shape);
  return values_and_positions(x, x.shape);
}

/// A radix sort by eight bits: each pass reads and writes keys and positions (CUB's
/// DeviceSegmentedRadixSort; as `embedding_backward`).
void work_sort(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  const int64_t pass =
      checked_add(tensor_bytes(context.output(0)), tensor_bytes(context.output(1)));
  const int64_t all =
      checked_multiply(pass, std::max<int64_t>(1, dtype_bits(x.dtype) / kBitsPerByte));
  kernels.push_back({.shape = Stream{.elements = element_count(x.shape)},
                     .dtype = x.dtype,
                     .flops = element_count(x.shape),
                     .read_bytes = all,
                     .write_bytes = all});
}

void backward_positions(GradientBuilder& g, const Node& node) {
  if (g.gradient(node.outputs[0]) < 0) return;
  g.add_gradient(node.inputs[0], g.op("gather_backward", {g.dense(g.gradient(node.outputs[0])),
                                                          node.inputs[0], node.outputs[1]}));
}

// Sizes of single kernels: rows and columns of x, and how many of them are selected.

std::vector<SizeDef> selected_sizes() {
  std::vector<SizeDef> sizes = row_sizes();
  sizes.push_back({.name = "selected", .doc = "rows that are selected", .other_names = {"k"}});
  return sizes;
}

Operands select_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype()),
           b.input("i", {s["selected"]}, DType::kInt64)},
          {}};
}

Operands index_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = select_operands(b, s);
  operands.attributes = {{"shape", Shape{s["selected"], s["columns"]}}};
  return operands;
}

Operands gather_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype()),
           b.input("i", {s["selected"], s["columns"]}, DType::kInt64)},
          {}};
}

Operands scatter_operands(GraphBuilder& b, const GivenSizes& s) {
  return {
      {b.input("x", {s["rows"], s["columns"]}, s.dtype()), b.input("i", {s["rows"]}, DType::kInt64),
       b.input("u", {s["rows"], s["columns"]}, s.dtype())},
      {}};
}

Operands one_hot_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("i", {s["rows"]}, DType::kInt64)}, {{"classes", s["columns"]}}};
}

Operands top_k_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype())},
          {{"k", std::min(s["selected"], s["columns"])}, {"dim", 1}}};
}

}  // namespace

std::vector<OpDef> indexing_ops() {  // NOLINT(readability-function-size): a table
  const AttributeDef shape{.name = "shape",
                           .doc = "the shape of the output",
                           .type = AttributeType::kIntegers,
                           .required = true};
  std::vector<OpDef> ops = {
      {.name = "index_select",
       .doc = "slices of x along a dimension, selected by an index of any shape",
       .aten = "aten::index_select",
       .onnx = "Gather",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {dim_attribute("along which")},
       .infer = infer_index_select,
       .work = work_index,
       .backward = backward_index,
       .sizes = selected_sizes(),
       .operands = select_operands,
       .example = "x: fp32[64, 256] i: int64[4, 16] {dim=1}"},
      {.name = "gather_elements",
       .doc = "elements of x along a dimension, selected by an index of the result's shape",
       .aten = "aten::gather",
       .onnx = "GatherElements",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {dim_attribute("along which")},
       .infer = infer_gather_elements,
       .work = work_index,
       .backward = backward_index,
       .sizes = selected_sizes(),
       .operands = gather_operands,
       .example = "x: fp32[64, 256] i: int64[16, 256]"},
      {.name = "index",
       .doc = "elements or slices of x at positions that the other inputs hold",
       .aten = "aten::index.Tensor",
       .onnx = "GatherND",
       .min_inputs = 2,
       .max_inputs = 8,
       .attributes = {shape},
       .infer = infer_index,
       .work = work_index,
       .backward = backward_index,
       .sizes = selected_sizes(),
       .operands = index_operands,
       .example = "x: fp32[64, 256] i: int64[16] {shape=[16, 256]}"},
      {.name = "scatter",
       .doc = "x with other elements, or sums, at the positions of an index: x, index, updates",
       .aten = "aten::scatter",
       .onnx = "ScatterElements",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {{.name = "reduce",
                       .doc = "none: replaces elements; or the name of a reduction with them",
                       .type = AttributeType::kText,
                       .default_value = std::string("none")},
                      flag_attribute("in_place", "1: writes to x; 0: to a copy of it")},
       .infer = infer_scatter,
       .work = work_scatter,
       .backward = backward_scatter_elements,
       .operands = scatter_operands,
       .example = "x: fp32[64, 256] i: int64[16] u: fp32[16, 256]"},
      {.name = "one_hot",
       .doc = "a row of zeros for each index, with a one at its position",
       .aten = "aten::one_hot",
       .onnx = "OneHot",
       .attributes = {count_attribute("classes", "length of a row"),
                      {.name = "dtype",
                       .doc = "of the output",
                       .type = AttributeType::kDType,
                       .default_value = DType::kInt64}},
       .infer = infer_one_hot,
       .work = work_one_hot,
       .operands = one_hot_operands,
       .example = "i: int64[64] {classes=16}"},
      {.name = "top_k",
       .doc = "the largest elements along a dimension, and their positions",
       .aten = "aten::topk",
       .onnx = "TopK",
       .attributes = {count_attribute("k", "how many"), dim_attribute("along which")},
       .infer = infer_top_k,
       .work = work_top_k,
       .backward = backward_positions,
       .sizes = selected_sizes(),
       .operands = top_k_operands,
       .example = "x: fp32[64, 256] {k=8, dim=1}"},
      {.name = "sort",
       .doc = "the elements along a dimension in order, and their positions",
       .aten = "aten::sort",
       .onnx = "",
       .attributes = {dim_attribute("along which")},
       .infer = infer_sort,
       .work = work_sort,
       .backward = backward_positions,
       .example = "x: fp32[64, 256] {dim=1}"},
  };
  for (OpDef& op : ops) op.unmeasured = true;
  return ops;
}

}  // namespace tilecast
