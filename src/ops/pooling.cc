// Pooling over any number of dimensions, and resizing: each output is computed from a window of the
// input.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"
#include "ops/windows.h"

namespace tilecast {
namespace {

/// The last dimensions, as many as the window has.
std::vector<TensorSpec> infer_pool(const OpContext& context) {
  const Tensor& x = context.input(0);
  const auto& window = context.attribute<Shape>("window");
  const size_t dims = window.size();
  if (dims == 0 || x.shape.size() < dims)
    context.fail(
        fmt::format("a window {} does not fit {}", format_shape(window), format_shape(x.shape)));
  const auto& strides = context.attribute<Shape>("strides");
  if (!strides.empty() && strides.size() != dims)
    context.fail(fmt::format("attribute 'strides': expected {} numbers, found {}", dims,
                             format_shape(strides)));
  const Shape in(x.shape.end() - static_cast<std::ptrdiff_t>(dims), x.shape.end());
  const Shape out = window_positions(context, in, window, strides.empty() ? window : strides,
                                     context.integer("ceil") != 0);
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype};
  std::copy(out.begin(), out.end(), spec.shape.end() - static_cast<std::ptrdiff_t>(dims));
  return {spec};
}

std::vector<TensorSpec> infer_max_pool_nd(const OpContext& context) {
  std::vector<TensorSpec> specs = infer_pool(context);
  specs.push_back({.shape = specs[0].shape, .dtype = DType::kInt64});
  return specs;
}

/// One operation for each element of each window. Windows that overlap read the same elements from
/// the cache.
void work_pool(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  const int64_t results = element_count(y.shape);
  Kernel kernel{.shape = Stream{.elements = results}, .dtype = y.dtype};
  kernel.flops = checked_multiply(results, element_count(context.attribute<Shape>("window")));
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void backward_max_pool_nd(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op("max_pool2d_backward", {g.dense(g.gradient(node.outputs[0])),
                                                              node.inputs[0], node.outputs[1]}));
}

void backward_pool(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0],
                 g.op("avg_pool_backward", {g.dense(g.gradient(node.outputs[0])), node.inputs[0]}));
}

std::vector<TensorSpec> infer_like_second(const OpContext& context) {
  return {{.shape = context.input(1).shape, .dtype = context.input(0).dtype}};
}

/// Reads the gradient; x gives its shape only.
void work_from_gradient(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dx = context.output(0);
  const int64_t elements = element_count(dx.shape);
  kernels.push_back({.shape = Stream{.elements = elements},
                     .dtype = dx.dtype,
                     .flops = std::max(elements, element_count(context.input(0).shape)),
                     .read_bytes = tensor_bytes(context.input(0)),
                     .write_bytes = tensor_bytes(dx)});
}

// adaptive_pool: windows whose size follows from the output's.
std::vector<TensorSpec> infer_adaptive(const OpContext& context) {
  const Tensor& x = context.input(0);
  const auto& shape = context.attribute<Shape>("shape");
  if (shape.empty() || shape.size() >= x.shape.size())
    context.fail(fmt::format("expected sizes of the last dimensions of {}, found {}",
                             format_shape(x.shape), format_shape(shape)));
  TensorSpec spec{.shape = x.shape, .dtype = x.dtype};
  std::copy(shape.begin(), shape.end(),
            spec.shape.end() - static_cast<std::ptrdiff_t>(shape.size()));
  return {spec};
}

/// Every element is read once or more; each takes one operation.
void work_adaptive(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  Kernel kernel{.shape = Stream{.elements = element_count(y.shape)}, .dtype = y.dtype};
  kernel.flops = std::max(element_count(context.input(0).shape), element_count(y.shape));
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

// resize: another size by interpolation between neighbours.
std::vector<TensorSpec> infer_resize(const OpContext& context) {
  const Tensor& x = context.input(0);
  const auto& shape = context.attribute<Shape>("shape");
  if (shape.size() != x.shape.size())
    context.fail(fmt::format("cannot resize {} to {}", format_shape(x.shape), format_shape(shape)));
  const auto& mode = context.attribute<std::string>("mode");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    context.fail(
        fmt::format("attribute 'mode': expected nearest, linear or cubic, found {}", mode));
  return {{.shape = shape, .dtype = x.dtype}};
}

/// FLOPs of one result: a multiplication and an addition for each neighbour in each resized
/// dimension (2 for linear, 4 for cubic interpolation).
int64_t resize_flops(const OpContext& context, const Shape& from, const Shape& to) {
  const auto& mode = context.attribute<std::string>("mode");
  if (mode == "nearest") return 0;
  int64_t neighbours = 1;
  for (size_t d = 0; d < from.size() && d < to.size(); ++d) {
    if (from[d] != to[d]) neighbours = checked_multiply(neighbours, mode == "linear" ? 2 : 4);
  }
  return checked_multiply(2, neighbours);
}

void work_resize_nd(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  const int64_t results = element_count(y.shape);
  Kernel kernel{.shape = Stream{.elements = results}, .dtype = y.dtype};
  kernel.flops = checked_multiply(results, resize_flops(context, context.input(0).shape, y.shape));
  // A smaller image by nearest neighbours reads only what it keeps.
  const bool nearest = context.attribute<std::string>("mode") == "nearest";
  const int64_t whole = tensor_bytes(context.input(0)), kept = tensor_bytes(y);
  kernel.read_bytes = nearest ? std::min(whole, kept) : whole;
  kernel.write_bytes = kept;
  kernels.push_back(kernel);
}

void backward_resize(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0],
                 g.op("resize_backward", {g.dense(g.gradient(node.outputs[0])), node.inputs[0]},
                      {{"mode", attribute<std::string>(node, "mode")}}));
}

/// Fills zeros, then adds each gradient to its neighbours.
void work_resize_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dy = context.input(0);
  const Tensor& dx = context.output(0);
  const int64_t elements = element_count(dx.shape);
  kernels.push_back(
      {.shape = Stream{.elements = elements}, .dtype = dx.dtype, .write_bytes = tensor_bytes(dx)});
  const int64_t per_result = std::max<int64_t>(1, resize_flops(context, dx.shape, dy.shape));
  kernels.push_back({.shape = Stream{.elements = element_count(dy.shape)},
                     .dtype = dx.dtype,
                     .flops = checked_multiply(element_count(dy.shape), per_result),
                     .read_bytes = checked_add(tensor_bytes(dy), tensor_bytes(dx)),
                     .write_bytes = tensor_bytes(dx)});
}

// grid_sample: x [b, c, ...] read at the positions of a grid [b, ..., dimensions].
std::vector<TensorSpec> infer_grid_sample(const OpContext& context) {
  const Shape& x = context.input(0).shape;
  const Shape& grid = context.input(1).shape;
  if (x.size() < 3 || grid.size() != x.size() || grid[0] != x[0] ||
      grid.back() != static_cast<int64_t>(x.size()) - 2)
    context.fail(
        fmt::format("expected x [b, c, ...] and a grid [b, ..., dimensions], found {} and "
                    "{}",
                    format_shape(x), format_shape(grid)));
  Shape shape = {x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return {{.shape = shape, .dtype = context.input(0).dtype}};
}

/// Two neighbours in each dimension are read for each result; of the grid, each position once.
Kernel sample_kernel(const Tensor& y, const Tensor& grid) {
  const int64_t results = element_count(y.shape);
  const int64_t neighbours = int64_t{1} << (grid.shape.size() - 2);
  const int64_t read = checked_multiply(tensor_bytes(y), neighbours);
  return {.shape = Stream{.elements = results},
          .dtype = y.dtype,
          .flops = checked_product({results, neighbours, 2}),
          .read_bytes = checked_add(read, tensor_bytes(grid)),
          .write_bytes = tensor_bytes(y)};
}

void work_grid_sample(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(sample_kernel(context.output(0), context.input(1)));
}

void backward_grid_sample(GradientBuilder& g, const Node& node) {
  const std::vector<TensorId> grads =
      g.add("grid_sample_backward",
            {g.dense(g.gradient(node.outputs[0])), node.inputs[0], node.inputs[1]});
  for (size_t i = 0; i < 2; ++i) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_grid_sample_backward(const OpContext& context) {
  const DType dtype = context.input(0).dtype;
  return {{.shape = context.input(1).shape, .dtype = dtype},
          {.shape = context.input(2).shape, .dtype = dtype}};
}

/// Fills zeros, then adds each gradient to its neighbours, and to the position that it came from.
void work_grid_sample_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dx = context.output(0);
  kernels.push_back({.shape = Stream{.elements = element_count(dx.shape)},
                     .dtype = dx.dtype,
                     .write_bytes = tensor_bytes(dx)});
  if (context.input(2).shape.size() < 3) context.fail("expected a grid [b, ..., dimensions]");
  Kernel kernel = sample_kernel(context.input(0), context.input(2));
  kernel.write_bytes = checked_add(kernel.read_bytes, tensor_bytes(context.output(1)));
  kernels.push_back(kernel);
}

Operands pool_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["batch"], s["channels"], s["height"], image_width(s)}, s.dtype())},
          {{"window", Shape{s["window"], s["window"]}}}};
}

std::vector<SizeDef> pool_sizes() {
  return {{.name = "batch", .doc = "images"},
          {.name = "channels", .doc = "of the images", .other_names = {"k"}},
          {.name = "height", .doc = "rows of an image", .other_names = {"m"}},
          width_size({"n"}),
          {.name = "window", .doc = "rows and columns of a window"}};
}

Operands adaptive_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"shape", Shape{1}}};
  return operands;
}

Operands resize_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"shape", Shape{s["rows"], checked_multiply(2, s["columns"])}}};
  return operands;
}

Operands grid_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {1, 1, s["rows"], s["columns"]}, s.dtype()),
           b.input("grid", {1, s["rows"], s["columns"], 2}, s.dtype())},
          {}};
}

Operands grid_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = grid_operands(b, s);
  operands.inputs.insert(operands.inputs.begin(),
                         b.input("dy", {1, 1, s["rows"], s["columns"]}, s.dtype()));
  return operands;
}

std::vector<AttributeDef> pool_attributes() {
  std::vector<AttributeDef> all = window_attributes();
  all.insert(all.begin(), {.name = "window",
                           .doc = "its size in each of the last dimensions",
                           .type = AttributeType::kIntegers,
                           .required = true,
                           .min = 1});
  all.push_back(flag_attribute("ceil", "1: a last window may end outside"));
  return all;
}

OpDef pool(std::string_view name, std::string_view doc, std::string_view aten,
           std::string_view onnx) {
  return {.name = name,
          .doc = doc,
          .aten = aten,
          .onnx = onnx,
          .attributes = pool_attributes(),
          .infer = infer_pool,
          .work = work_pool,
          .backward = backward_pool,
          .sizes = pool_sizes(),
          .operands = pool_operands,
          .example = "x: fp32[2, 16, 8, 8] {window=[3, 3], strides=[2, 2], pads=[1, 1]}"};
}

OpDef gradient_of(std::string_view name, std::string_view doc, std::string_view aten,
                  decltype(OpDef::work) work) {
  return {.name = name,
          .doc = doc,
          .aten = aten,
          .onnx = "",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_like_second,
          .work = work,
          .example = "dy: fp32[2, 16, 4, 4] x: fp32[2, 16, 8, 8]"};
}

}  // namespace

std::vector<OpDef> pooling_ops() {  // NOLINT(readability-function-size): a table
  const AttributeDef shape{.name = "shape",
                           .doc = "the shape of the output",
                           .type = AttributeType::kIntegers,
                           .required = true,
                           .min = 1};
  const AttributeDef mode{.name = "mode",
                          .doc = "nearest, linear or cubic",
                          .type = AttributeType::kText,
                          .default_value = std::string("nearest")};
  OpDef max_pool = pool("max_pool", "the largest element of each window, and its index",
                        "aten::max_pool3d_with_indices", "MaxPool");
  max_pool.infer = infer_max_pool_nd;
  max_pool.backward = backward_max_pool_nd;
  OpDef resize_backward =
      gradient_of("resize_backward", "gradient of a resized tensor, from dy and the tensor",
                  "aten::upsample_bilinear2d_backward", work_resize_backward);
  resize_backward.attributes = {mode};
  AttributeDef sizes = shape;
  sizes.doc = "of the last dimensions of the output";
  std::vector<OpDef> ops = {
      max_pool,
      pool("avg_pool", "the mean of each window", "aten::avg_pool2d", "AveragePool"),
      {.name = "adaptive_pool",
       .doc = "the mean or the maximum of windows that give an output of this size",
       .aten = "aten::_adaptive_avg_pool2d",
       .onnx = "",
       .attributes = {sizes},
       .infer = infer_adaptive,
       .work = work_adaptive,
       .backward = backward_pool,
       .operands = adaptive_operands,
       .example = "x: fp32[2, 16, 8, 8] {shape=[3, 3]}"},
      gradient_of("avg_pool_backward", "gradient of a pooling's input, from dy and the input",
                  "aten::avg_pool2d_backward", work_from_gradient),
      {.name = "resize",
       .doc = "another size by interpolation",
       .aten = "aten::upsample_bilinear2d",
       .onnx = "Resize",
       .attributes = {shape, mode},
       .infer = infer_resize,
       .work = work_resize_nd,
       .backward = backward_resize,
       .autocast = AutocastClass::kFp32,
       .operands = resize_operands,
       .example = "x: fp32[2, 16, 8, 8] {shape=[2, 16, 12, 12], mode=\"linear\"}"},
      resize_backward,
      {.name = "grid_sample",
       .doc = "elements of x [b, c, ...] at the positions of a grid, interpolated",
       .aten = "aten::grid_sampler_2d",
       .onnx = "GridSample",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_grid_sample,
       .work = work_grid_sample,
       .backward = backward_grid_sample,
       .autocast = AutocastClass::kFp32,
       .operands = grid_operands,
       .example = "x: fp32[2, 16, 8, 8] grid: fp32[2, 4, 4, 2]"},
      {.name = "grid_sample_backward",
       .doc = "gradients of x and the grid, from dy, x and the grid",
       .aten = "aten::grid_sampler_2d_backward",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_grid_sample_backward,
       .work = work_grid_sample_backward,
       .operands = grid_backward_operands,
       .example = "dy: fp32[2, 16, 4, 4] x: fp32[2, 16, 8, 8] grid: fp32[2, 4, 4, 2]"}};
  for (OpDef& op : ops) op.unmeasured = true;
  return ops;
}

}  // namespace tilecast
