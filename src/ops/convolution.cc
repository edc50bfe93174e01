// Operators on images and audio: convolutions as implicit matrix products, group norm, resizing.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/rng.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

// conv2d: x [b, c, h, w] with weight [o, c / groups, kh, kw] and bias [o].
struct Conv2dSizes {
  int64_t batch, in, height, width, out, kernel_h, kernel_w, groups, out_h, out_w;
  int64_t stride, channels_last;
};

Conv2dSizes conv2d_sizes(const OpContext& context, const Tensor& x, const Tensor& w) {
  if (x.shape.size() != 4 || w.shape.size() != 4)
    context.fail(
        fmt::format("expected x [b, c, h, w] and a weight [o, c / groups, kh, kw], found {} "
                    "and {}",
                    format_shape(x.shape), format_shape(w.shape)));
  const int64_t groups = context.integer("groups");
  const int64_t stride = context.integer("stride");
  const int64_t padding = context.integer("padding");
  if (checked_multiply(w.shape[1], groups) != x.shape[1] || w.shape[0] % groups != 0)
    context.fail(fmt::format("{} groups of a weight {} do not fit {} channels", groups,
                             format_shape(w.shape), x.shape[1]));
  // An input of height 1 is audio: padding and stride apply to the width only.
  const auto output = [&](int64_t size, int64_t kernel) {
    if (size == 1 && kernel == 1) return int64_t{1};
    const int64_t room = checked_add(size, 2 * padding) - kernel;
    if (room < 0) context.fail(fmt::format("a kernel of {} is larger than {}", kernel, size));
    return room / stride + 1;
  };
  return {x.shape[0],
          x.shape[1],
          x.shape[2],
          x.shape[3],
          w.shape[0],
          w.shape[2],
          w.shape[3],
          groups,
          output(x.shape[2], w.shape[2]),
          output(x.shape[3], w.shape[3]),
          stride,
          context.integer("channels_last")};
}

std::vector<TensorSpec> infer_conv2d(const OpContext& context) {
  const Conv2dSizes s = conv2d_sizes(context, context.input(0), context.input(1));
  return {{.shape = {s.batch, s.out, s.out_h, s.out_w}, .dtype = context.input(0).dtype}};
}

/// FLOPs follow from the definition. Libraries may run an algorithm with fewer, which the cost
/// model chooses (predict/law_convolution.cc).
Kernel conv2d_kernel(const Conv2dSizes& s, DType dtype, Convolution::Pass pass) {
  Kernel kernel{.shape = Convolution{.batch = s.batch,
                                     .in_channels = s.in,
                                     .out_channels = s.out,
                                     .out_height = s.out_h,
                                     .out_width = s.out_w,
                                     .window_height = s.kernel_h,
                                     .window_width = s.kernel_w,
                                     .groups = s.groups,
                                     .stride = s.stride,
                                     .channels_last = s.channels_last,
                                     .pass = pass},
                .dtype = dtype};
  const Gemm gemm = gemm_of(kernel);
  kernel.flops = checked_product({2, gemm.batch, gemm.m, gemm.n, gemm.k});
  return kernel;
}

/// Bytes of an input that no window covers: lines between the windows, and pixels between them
/// where each is stored in one piece.
int64_t skipped_bytes(const Conv2dSizes& s, const Tensor& x) {
  const auto skipped = [&](int64_t size, int64_t window) {
    const int64_t gap = std::max<int64_t>(0, s.stride - window);
    return size == 1 ? 0 : size / s.stride * gap;
  };
  const int64_t lines = s.height - skipped(s.height, s.kernel_h);
  const int64_t pixels = s.width - (s.channels_last != 0 ? skipped(s.width, s.kernel_w) : 0);
  const int64_t bytes = tensor_bytes(x);
  return bytes - bytes / (s.height * s.width) * lines * pixels;
}

void work_conv2d(const OpContext& context, std::vector<Kernel>& kernels) {
  const Conv2dSizes sizes = conv2d_sizes(context, context.input(0), context.input(1));
  Kernel kernel = conv2d_kernel(sizes, context.output(0).dtype, Convolution::Pass::kForward);
  add_traffic(kernel, context);
  kernel.read_bytes -= skipped_bytes(sizes, context.input(0));
  kernels.push_back(kernel);
}

void backward_conv2d(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const std::vector<TensorId> operands = {dy, node.inputs[0], node.inputs[1]};
  if (g.requires_grad(node.inputs[0]))
    g.add_gradient(node.inputs[0], g.op("conv2d_input_backward", operands, node.attributes));
  if (g.requires_grad(node.inputs[1]))
    g.add_gradient(node.inputs[1], g.op("conv2d_weight_backward", operands, node.attributes));
  if (node.inputs.size() == 3 && g.requires_grad(node.inputs[2])) {
    // The bias gradient is the sum over all dimensions but the channels.
    g.add_gradient(node.inputs[2],
                   g.op("reduce_sum", {dy}, {{"shape", g.tensor(node.inputs[2]).shape}}));
  }
}

std::vector<TensorSpec> infer_conv2d_input_backward(const OpContext& context) {
  return {{.shape = context.input(1).shape, .dtype = context.input(0).dtype}};
}

std::vector<TensorSpec> infer_conv2d_weight_backward(const OpContext& context) {
  return {{.shape = context.input(2).shape, .dtype = context.input(0).dtype}};
}

/// Each gradient has as many FLOPs as the forward pass.
void work_conv2d_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  using Pass = Convolution::Pass;
  const bool of_weight = op_def(context.node.op).name == "conv2d_weight_backward";
  const Conv2dSizes sizes = conv2d_sizes(context, context.input(1), context.input(2));
  Kernel kernel = conv2d_kernel(sizes, context.output(0).dtype,
                                of_weight ? Pass::kWeightGradient : Pass::kInputGradient);
  kernel.read_bytes =
      checked_add(tensor_bytes(context.input(0)), tensor_bytes(context.input(of_weight ? 1 : 2)));
  if (of_weight) kernel.read_bytes -= skipped_bytes(sizes, context.input(1));
  kernel.write_bytes = tensor_bytes(context.output(0));
  kernels.push_back(kernel);
}

// group_norm: x [b, c, ...], each group of channels is normalized as one row.
std::vector<TensorSpec> infer_group_norm(const OpContext& context) {
  const Tensor& x = context.input(0);
  const int64_t groups = context.integer("groups");
  if (x.shape.size() < 2 || x.shape[1] % groups != 0)
    context.fail(
        fmt::format("{} groups do not divide the channels of {}", groups, format_shape(x.shape)));
  const Shape statistics = {x.shape[0], groups};
  return {{.shape = x.shape, .dtype = x.dtype},
          {.shape = statistics, .dtype = DType::kFp32},
          {.shape = statistics, .dtype = DType::kFp32}};
}

void work_group_norm(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  Rows sizes{.function = Rows::Function::kNorm};
  sizes.rows = checked_multiply(x.shape[0], context.integer("groups"));
  sizes.columns = element_count(x.shape) / sizes.rows;
  Kernel kernel{.shape = sizes, .dtype = x.dtype};
  kernel.flops = checked_multiply(element_count(x.shape), 8);  // as layer norm
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void backward_group_norm(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const TensorId x = node.inputs[0];
  if (g.requires_grad(x)) g.add_gradient(x, g.op("group_norm_backward", {dy, x}, node.attributes));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (g.requires_grad(node.inputs[i]))
      g.add_gradient(node.inputs[i],
                     g.op("reduce_sum", {dy}, {{"shape", g.tensor(node.inputs[i]).shape}}));
  }
}

// upsample: doubles height and width, nearest neighbour.
std::vector<TensorSpec> infer_upsample(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  if (spec.shape.size() != 4)
    context.fail(fmt::format("expected [b, c, h, w], found {}", format_shape(spec.shape)));
  spec.shape[2] = checked_multiply(spec.shape[2], 2);
  spec.shape[3] = checked_multiply(spec.shape[3], 2);
  return {spec};
}

void work_resize(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel{.shape = Stream{.elements = element_count(context.output(0).shape)},
                .dtype = context.output(0).dtype};
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void backward_upsample(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op("reduce_sum", {g.gradient(node.outputs[0])},
                                      {{"shape", g.tensor(node.inputs[0]).shape}}));
}

std::vector<SizeDef> conv_sizes_by_name() {
  return {{.name = "batch", .doc = "images", .drawn_bits = 6, .grows = true},
          {.name = "in_channels",
           .doc = "of the images",
           .other_names = {"k", "channels"},
           .drawn_bits = 9,
           .grows = true},
          {.name = "out_channels",
           .doc = "of the result",
           .other_names = {"m", "filters"},
           .drawn_bits = 9,
           .grows = true},
          {.name = "height",
           .doc = "rows of an image",
           .other_names = {"n"},
           .drawn_bits = 7,
           .grows = true},
          width_size(),
          {.name = "window_height",
           .doc = "rows of the window",
           .other_names = {"kernel_height"},
           .default_value = int64_t{3}},
          {.name = "window_width",
           .doc = "columns of the window",
           .other_names = {"kernel_width"},
           .default_value = std::nullopt,
           .default_rule = "as window_height"},
          {.name = "stride", .doc = "in both directions"},
          {.name = "padding",
           .doc = "on all sides",
           .default_value = std::nullopt,
           .default_rule = "half of window_height",
           .min = 0},
          {.name = "groups", .doc = "of channels"},
          switch_size("channels_last", "images are stored as [b, h, w, c]")};
}

void draw_conv2d_window(Rng& rng, SizeList& sizes) {
  sizes.push_back({"window_height", static_cast<int64_t>(1 + 2 * rng.below(4))});
  sizes.push_back({"stride", static_cast<int64_t>(1 + rng.below(2))});
  sizes.push_back({"channels_last", static_cast<int64_t>(rng.below(2))});
}

Operands conv2d_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t groups = s["groups"], in = s["in_channels"], out = s["out_channels"];
  if (in % groups != 0 || out % groups != 0)
    s.fail(fmt::format("{} groups do not divide {} and {} channels", groups, in, out));
  const int64_t window = s["window_height"];
  const Shape image = {s["batch"], in, s["height"], image_width(s)};
  const Shape weight = {out, in / groups, window, s.value_or("window_width", window)};
  return {{b.input("x", image, s.dtype()), b.input("w", weight, s.dtype())},
          {{"stride", s["stride"]},
           {"padding", s.value_or("padding", window / 2)},
           {"groups", groups},
           {"channels_last", s["channels_last"]}}};
}

/// The operands of the forward pass and the gradient of its output.
Operands conv2d_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = conv2d_operands(b, s);
  const TensorId y = b.op("conv2d", operands.inputs, "y", operands.attributes);
  const Shape gradient = b.graph().tensor(y).shape;
  operands.inputs.insert(operands.inputs.begin(), b.input("dy", gradient, s.dtype()));
  return operands;
}

Operands group_norm_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"groups", 1}};
  return operands;
}

std::vector<SizeDef> upsample_sizes() {
  return {{.name = "batch", .doc = "images"},
          {.name = "channels", .doc = "of the images", .other_names = {"k"}},
          {.name = "height", .doc = "rows of an image", .other_names = {"m"}},
          width_size({"n"})};
}

Operands upsample_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["batch"], s["channels"], s["height"], image_width(s)}, s.dtype())}, {}};
}

}  // namespace

std::vector<OpDef> convolution_ops() {  // NOLINT(readability-function-size): a table
  const std::vector<AttributeDef> conv = {
      {.name = "stride", .doc = "in both directions", .default_value = int64_t{1}, .min = 1},
      {.name = "padding", .doc = "on all sides", .default_value = int64_t{0}},
      {.name = "groups", .doc = "of channels", .default_value = int64_t{1}, .min = 1},
      flag_attribute("channels_last", "1: images are stored as [b, h, w, c]")};
  const AttributeDef groups = count_attribute("groups", "of channels");
  return {
      {.name = "conv2d",
       .doc = "x [b, c, h, w] convolved with a weight [o, c / groups, kh, kw], plus bias [o]",
       .aten = "aten::convolution",
       .onnx = "Conv",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = conv,
       .infer = infer_conv2d,
       .work = work_conv2d,
       .backward = backward_conv2d,
       .autocast = AutocastClass::kLowPrecision,
       .sizes = conv_sizes_by_name(),
       .operands = conv2d_operands,
       .random_sizes = RandomSizes{.draw = draw_conv2d_window},
       .example = "x: fp32[2, 16, 32, 32] w: fp32[32, 16, 3, 3] b: fp32[32] {padding=1}"},
      {.name = "conv2d_input_backward",
       .doc = "gradient of a convolution's input, from dy, x and the weight",
       .aten = "aten::convolution_backward",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = conv,
       .infer = infer_conv2d_input_backward,
       .work = work_conv2d_backward,
       .sizes = conv_sizes_by_name(),
       .operands = conv2d_backward_operands,
       .random_sizes = RandomSizes{.draw = draw_conv2d_window},
       .example =
           "dy: fp32[2, 32, 32, 32] x: fp32[2, 16, 32, 32] w: fp32[32, 16, 3, 3] {padding=1}"},
      {.name = "conv2d_weight_backward",
       .doc = "gradient of a convolution's weight, from dy, x and the weight",
       .aten = "aten::convolution_backward",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = conv,
       .infer = infer_conv2d_weight_backward,
       .work = work_conv2d_backward,
       .sizes = conv_sizes_by_name(),
       .operands = conv2d_backward_operands,
       .random_sizes = RandomSizes{.draw = draw_conv2d_window},
       .example =
           "dy: fp32[2, 32, 32, 32] x: fp32[2, 16, 32, 32] w: fp32[32, 16, 3, 3] {padding=1}"},
      unmeasured(
          {.name = "group_norm",
           .doc = "normalizes groups of channels to mean 0 and variance 1, then scales and shifts",
           .aten = "aten::native_group_norm",
           .onnx = "GroupNormalization",
           .max_inputs = 3,
           .attributes = {groups},
           .infer = infer_group_norm,
           .work = work_group_norm,
           .backward = backward_group_norm,
           .autocast = AutocastClass::kFp32,
           .operands = group_norm_operands,
           .example = "x: fp32[2, 32, 16, 16] w: fp32[32] b: fp32[32] {groups=8}"}),
      unmeasured({.name = "group_norm_backward",
                  .doc = "gradient of a group norm's input",
                  .aten = "aten::native_group_norm_backward",
                  .onnx = "",
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .attributes = {groups},
                  .infer = infer_same,
                  .work = work_group_norm,
                  .operands = group_norm_operands,
                  .example = "dy: fp32[2, 32, 16, 16] x: fp32[2, 32, 16, 16] {groups=8}"}),
      unmeasured({.name = "upsample",
                  .doc = "doubles height and width, nearest neighbour",
                  .aten = "aten::upsample_nearest2d",
                  .onnx = "Resize",
                  .infer = infer_upsample,
                  .work = work_resize,
                  .backward = backward_upsample,
                  .autocast = AutocastClass::kFp32,
                  .sizes = upsample_sizes(),
                  .operands = upsample_operands,
                  .example = "x: fp32[2, 16, 8, 8]"}),
  };
}

}  // namespace tilecast
