// Operators on images beside convolutions: batch norm, max pooling, padding.

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/checked.h"
#include "ops/decompose.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

void expect_image(const OpContext& context) {
  if (context.input(0).shape.size() != 4)
    context.fail(
        fmt::format("expected [b, c, h, w], found {}; use `view` to give it four dimensions",
                    format_shape(context.input(0).shape)));
}

// batch_norm: x [b, c, ...], weight, bias, running mean and variance [c]. In training, the mean and
// the variance of each channel are computed over the batch.
std::vector<TensorSpec> infer_batch_norm(const OpContext& context) {
  const Tensor& x = context.input(0);
  if (x.shape.size() < 2)
    context.fail(fmt::format("expected [b, c, ...], found {}", format_shape(x.shape)));
  const int64_t channels = x.shape[1];
  for (size_t i = 1; i < context.input_count(); ++i) {
    if (element_count(context.input(i).shape) != channels)
      context.fail(fmt::format("expected one number for each of {} channels, found {}", channels,
                               format_shape(context.input(i).shape)));
  }
  return {{.shape = x.shape, .dtype = x.dtype},
          {.shape = {channels}, .dtype = DType::kFp32},
          {.shape = {channels}, .dtype = DType::kFp32}};
}

Rows channel_rows(const Tensor& x) {
  const int64_t channels = x.shape[1];
  return {.rows = channels,
          .columns = element_count(x.shape) / std::max<int64_t>(1, channels),
          .function = Rows::Function::kNorm};
}

/// The norm of a batch whose images are stored by pixel: all blocks read their inputs for the sums
/// of all channels, and again for the result (cuDNN's kernels on H100; data/measurements, stages).
void read_twice(Kernel& kernel, const Tensor& x) {
  const Rows rows = channel_rows(x);
  kernel.shape = Stream{.rows = rows.rows, .elements = rows.columns};
  kernel.read_bytes = checked_multiply(kernel.read_bytes, 2);
}

/// In training a norm of `channels` rows; else one multiplication and addition per element with
/// numbers that follow from the stored statistics.
void work_batch_norm(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  Kernel kernel{.dtype = x.dtype};
  const int64_t elements = element_count(x.shape);
  constexpr int64_t kTrainingFlops = 8;  // as layer norm
  if (context.integer("training") != 0) {
    kernel.shape = channel_rows(x);
    kernel.flops = checked_multiply(elements, kTrainingFlops);
  } else {
    kernel.shape = Stream{.elements = elements};
    kernel.flops = checked_multiply(elements, 2);
  }
  add_traffic(kernel, context);
  if (kernel.is<Rows>() && context.integer("channels_last") != 0) read_twice(kernel, x);
  kernels.push_back(kernel);
}

void backward_batch_norm(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  std::vector<Attribute> layout;
  if (integer_or(node, "channels_last", 0) != 0) layout.push_back({"channels_last", int64_t{1}});
  const std::vector<TensorId> grads = g.add(
      "batch_norm_backward", {dy, node.inputs[0], node.inputs[1], node.outputs[1], node.outputs[2]},
      std::move(layout));
  for (size_t i = 0; i < grads.size(); ++i) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_batch_norm_backward(const OpContext& context) {
  const DType dtype = context.input(0).dtype;
  const Shape& weight = context.input(2).shape;
  return {{.shape = context.input(1).shape, .dtype = dtype},
          {.shape = weight, .dtype = context.input(2).dtype},
          {.shape = weight, .dtype = context.input(2).dtype}};
}

void work_batch_norm_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(1);
  if (x.shape.size() < 2)
    context.fail(fmt::format("expected x [b, c, ...], found {}", format_shape(x.shape)));
  Kernel kernel{.shape = channel_rows(x), .dtype = x.dtype};
  constexpr int64_t kBackwardFlops = 11;  // as the two backward kernels of layer norm
  kernel.flops = checked_multiply(element_count(x.shape), kBackwardFlops);
  add_traffic(kernel, context);
  if (context.integer("channels_last") != 0) read_twice(kernel, x);
  kernels.push_back(kernel);
}

// max_pool2d: the largest element of each window, and its index.
std::vector<TensorSpec> infer_max_pool(const OpContext& context) {
  expect_image(context);
  const Tensor& x = context.input(0);
  const int64_t window = context.integer("window");
  const int64_t padding = context.integer("padding");
  Shape shape = x.shape;
  for (const size_t d : {size_t{2}, size_t{3}}) {
    const int64_t room = checked_add(shape[d], 2 * padding) - window;
    if (room < 0)
      context.fail(fmt::format("a window of {} is larger than {}", window, format_shape(x.shape)));
    shape[d] = room / context.integer("stride") + 1;
  }
  return {{.shape = shape, .dtype = x.dtype}, {.shape = shape, .dtype = DType::kInt64}};
}

void work_max_pool(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  const int64_t window = context.integer("window");
  Kernel kernel{.shape = Stream{.elements = element_count(y.shape)}, .dtype = y.dtype};
  kernel.flops = checked_product({element_count(y.shape), window, window});
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void backward_max_pool(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op("max_pool2d_backward", {g.dense(g.gradient(node.outputs[0])),
                                                              node.inputs[0], node.outputs[1]}));
}

std::vector<TensorSpec> infer_max_pool_backward(const OpContext& context) {
  return {{.shape = context.input(1).shape, .dtype = context.input(0).dtype}};
}

/// Reads the gradient and the indices; x gives its shape only.
void work_max_pool_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& dx = context.output(0);
  kernels.push_back(
      {.shape = Stream{.elements = element_count(dx.shape)},
       .dtype = dx.dtype,
       .flops = element_count(context.input(0).shape),
       .read_bytes = checked_add(tensor_bytes(context.input(0)), tensor_bytes(context.input(2))),
       .write_bytes = tensor_bytes(dx)});
}

// pad2d: more rows and columns around each image; on which sides does not change the work.
std::vector<TensorSpec> infer_pad2d(const OpContext& context) {
  expect_image(context);
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  spec.shape[2] = checked_add(spec.shape[2], context.integer("rows"));
  spec.shape[3] = checked_add(spec.shape[3], context.integer("columns"));
  return {spec};
}

void work_pad2d(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& y = context.output(0);
  Kernel kernel{.shape = Stream{.elements = element_count(y.shape)}, .dtype = y.dtype};
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void backward_pad2d(GradientBuilder& g, const Node& node) {
  const Shape inside = g.tensor(node.inputs[0]).shape;
  TensorId dy = g.gradient(node.outputs[0]);
  for (const size_t d : {size_t{2}, size_t{3}})
    dy = g.op("slice", {dy}, {{"dim", static_cast<int64_t>(d)}, {"count", inside[d]}});
  g.add_gradient(node.inputs[0], dy);
}

/// `smallest`: rows and columns by default.
std::vector<SizeDef> image_sizes(int64_t smallest = 1) {
  return {{.name = "batch", .doc = "images"},
          {.name = "channels", .doc = "of the images", .other_names = {"k"}},
          {.name = "height",
           .doc = "rows of an image",
           .other_names = {"m"},
           .default_value = smallest},
          width_size({"n"})};
}

TensorId image(GraphBuilder& b, const GivenSizes& s, const char* name) {
  return b.input(name, {s["batch"], s["channels"], s["height"], image_width(s)}, s.dtype());
}

Operands batch_norm_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = {{image(b, s, "x")}, {}};
  for (const char* name : {"w", "b", "mean", "variance"})
    operands.inputs.push_back(b.input(name, {s["channels"]}, s.dtype()));
  return operands;
}

Operands batch_norm_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{image(b, s, "dy"), image(b, s, "x"), b.input("w", {s["channels"]}, s.dtype()),
           b.input("mean", {s["channels"]}, DType::kFp32),
           b.input("rstd", {s["channels"]}, DType::kFp32)},
          {}};
}

Operands one_image(GraphBuilder& b, const GivenSizes& s) { return {{image(b, s, "x")}, {}}; }

Operands pool_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  const Shape shape = {s["batch"], s["channels"], s["height"], image_width(s)};
  return {{b.input("dy", shape, s.dtype()), b.input("x", shape, s.dtype()),
           b.input("index", shape, DType::kInt64)},
          {}};
}

AttributeDef images_by_pixel() {
  return flag_attribute("channels_last", "1: images are stored as [b, h, w, c]");
}

OpDef batch_norm_backward() {
  return {.name = "batch_norm_backward",
          .doc = "gradients of a batch norm's input, weight and bias",
          .aten = "aten::native_batch_norm_backward",
          .onnx = "",
          .min_inputs = 5,
          .max_inputs = 5,
          .attributes = {images_by_pixel()},
          .infer = infer_batch_norm_backward,
          .work = work_batch_norm_backward,
          .sizes = image_sizes(),
          .operands = batch_norm_backward_operands,
          .example =
              "dy: fp32[2, 16, 8, 8] x: fp32[2, 16, 8, 8] w: fp32[16] m: fp32[16] r: "
              "fp32[16]"};
}

OpDef max_pool_backward() {
  return {.name = "max_pool2d_backward",
          .doc = "gradient of a max pooling's input, from dy, x and the indices",
          .aten = "aten::max_pool2d_with_indices_backward",
          .onnx = "",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_max_pool_backward,
          .work = work_max_pool_backward,
          .sizes = image_sizes(),
          .operands = pool_backward_operands,
          .example = "dy: fp32[2, 16, 4, 4] x: fp32[2, 16, 8, 8] i: int64[2, 16, 4, 4]"};
}

}  // namespace

std::vector<OpDef> image_ops() {
  return {
      unmeasured(
          {.name = "batch_norm",
           .doc =
               "normalizes channels by the batch's statistics in training, else by the stored mean "
               "and variance, the last two inputs",
           .aten = "aten::native_batch_norm",
           .onnx = "BatchNormalization",
           .min_inputs = 3,
           .max_inputs = 5,
           .attributes = {flag_attribute("training", "1: by the statistics of the batch"),
                          images_by_pixel()},
           .infer = infer_batch_norm,
           .work = work_batch_norm,
           .backward = backward_batch_norm,
           .sizes = image_sizes(),
           .operands = batch_norm_operands,
           .decompose = decompose_batch_norm,
           .example = "x: fp32[2, 16, 8, 8] w: fp32[16] b: fp32[16]"}),
      unmeasured(batch_norm_backward()),
      unmeasured(
          {.name = "max_pool2d",
           .doc = "the largest element of each window of an image, and its index",
           .aten = "aten::max_pool2d_with_indices",
           .onnx = "MaxPool",
           .attributes = {{.name = "window",
                           .doc = "rows and columns of a window",
                           .default_value = int64_t{2},
                           .min = 1},
                          {.name = "stride",
                           .doc = "in both directions",
                           .default_value = int64_t{2},
                           .min = 1},
                          {.name = "padding", .doc = "on all sides", .default_value = int64_t{0}}},
           .infer = infer_max_pool,
           .work = work_max_pool,
           .backward = backward_max_pool,
           .sizes = image_sizes(2),
           .operands = one_image,
           .example = "x: fp32[2, 16, 8, 8]"}),
      unmeasured(max_pool_backward()),
      {.name = "pad2d",
       .doc = "adds rows and columns around each image",
       .aten = "aten::constant_pad_nd",
       .onnx = "Pad",
       .attributes = {{.name = "rows", .doc = "in total", .default_value = int64_t{0}},
                      {.name = "columns", .doc = "in total", .default_value = int64_t{0}}},
       .infer = infer_pad2d,
       .work = work_pad2d,
       .backward = backward_pad2d,
       .sizes = image_sizes(),
       .operands = one_image,
       .example = "x: fp32[2, 16, 8, 8] {rows=1, columns=1}"}};
}

}  // namespace tilecast
