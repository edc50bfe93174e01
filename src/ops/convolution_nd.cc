// Convolutions over one to three dimensions with any stride, padding on each side, dilation and
// groups, and their transposes. `conv2d` (convolution.cc) is the short form for images.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"
#include "ops/windows.h"

namespace tilecast {
namespace {

constexpr size_t kMostDims = 3;  // cuDNN's convolutions have at most three spatial dimensions

/// A convolution and its transpose compute the same products: the transpose's output is the
/// convolution's input.
struct ConvSizes {
  bool transposed = false;
  int64_t batch = 1, in = 1, out = 1, groups = 1;  ///< channels of x and y
  int64_t stride = 1, dilation = 1;                ///< the largest of all directions
  int64_t channels_last = 0;
  Shape window, positions;  ///< positions: of x if transposed, else of y
  Shape y;                  ///< spatial dimensions of the output
};

Shape spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

/// (in - 1) · stride - pads + dilation · (window - 1) + 1 + output_padding
Shape transposed_size(const OpContext& context, const Shape& in, const Shape& window) {
  const size_t dims = in.size();
  const Shape strides = per_dimension(context, "strides", dims, 1);
  const Shape pads = total_pads(context, dims);
  const Shape dilations = per_dimension(context, "dilations", dims, 1);
  const Shape more = per_dimension(context, "output_padding", dims, 0);
  Shape out(dims);
  for (size_t d = 0; d < dims; ++d) {
    const int64_t reach = checked_multiply(dilations[d], window[d] - 1);
    out[d] = checked_add(checked_multiply(in[d] - 1, strides[d]), checked_add(reach, 1 + more[d])) -
             pads[d];
    if (out[d] < 1)
      context.fail(
          fmt::format("{} transposed positions with pads of {} leave nothing", in[d], pads[d]));
  }
  return out;
}

ConvSizes conv_sizes(const OpContext& context, const Tensor& x, const Tensor& w) {
  const size_t rank = x.shape.size();
  if (rank < 3 || rank > kMostDims + 2 || w.shape.size() != rank)
    context.fail(
        fmt::format("expected x [b, c, ...] of one to three dimensions and a weight of the same "
                    "rank, found {} and {}",
                    format_shape(x.shape), format_shape(w.shape)));
  ConvSizes s{.transposed = context.integer("transposed") != 0,
              .batch = x.shape[0],
              .in = x.shape[1],
              .groups = context.integer("groups"),
              .channels_last = context.integer("channels_last"),
              .window = spatial(w.shape)};
  // w: [o, c / groups, ...]; transposed: [c, o / groups, ...].
  const int64_t first = w.shape[0], second = w.shape[1];
  s.out = s.transposed ? checked_multiply(second, s.groups) : first;
  const int64_t channels = s.transposed ? first : checked_multiply(second, s.groups);
  if (channels != s.in || s.in % s.groups != 0 || s.out % s.groups != 0)
    context.fail(fmt::format("{} groups of a weight {} do not fit {} channels", s.groups,
                             format_shape(w.shape), s.in));
  const auto largest = [&](const char* attribute) {
    const Shape all = per_dimension(context, attribute, rank - 2, 1);
    return *std::max_element(all.begin(), all.end());
  };
  s.stride = largest("strides");
  s.dilation = largest("dilations");
  if (s.transposed) {
    s.positions = spatial(x.shape);
    s.y = transposed_size(context, s.positions, s.window);
  } else {
    s.y = window_positions(context, spatial(x.shape), s.window,
                           per_dimension(context, "strides", rank - 2, 1), false);
    s.positions = s.y;
  }
  return s;
}

std::vector<TensorSpec> infer_conv(const OpContext& context) {
  const ConvSizes s = conv_sizes(context, context.input(0), context.input(1));
  if (context.input_count() == 3 && element_count(context.input(2).shape) != s.out)
    context.fail(fmt::format("bias {} does not fit {} channels",
                             format_shape(context.input(2).shape), s.out));
  Shape shape = {s.batch, s.out};
  shape.insert(shape.end(), s.y.begin(), s.y.end());
  return {{.shape = shape, .dtype = context.input(0).dtype}};
}

/// The last dimension is the width, all others together are the height.
Kernel conv_kernel(const ConvSizes& s, DType dtype, Convolution::Pass pass) {
  using Pass = Convolution::Pass;
  const auto height = [](const Shape& dims) {
    return element_count(Shape(dims.begin(), dims.end() - 1));
  };
  if (s.transposed && pass != Pass::kWeightGradient)
    pass = pass == Pass::kForward ? Pass::kInputGradient : Pass::kForward;
  Kernel kernel{.shape = Convolution{.batch = s.batch,
                                     .in_channels = s.transposed ? s.out : s.in,
                                     .out_channels = s.transposed ? s.in : s.out,
                                     .out_height = height(s.positions),
                                     .out_width = s.positions.back(),
                                     .window_height = height(s.window),
                                     .window_width = s.window.back(),
                                     .groups = s.groups,
                                     .stride = s.stride,
                                     .dilation = s.dilation,
                                     .channels_last = s.channels_last,
                                     .pass = pass},
                .dtype = dtype};
  const Gemm gemm = gemm_of(kernel);
  kernel.flops = checked_product({2, gemm.batch, gemm.m, gemm.n, gemm.k});
  return kernel;
}

void work_conv(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel = conv_kernel(conv_sizes(context, context.input(0), context.input(1)),
                              context.output(0).dtype, Convolution::Pass::kForward);
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

void backward_conv(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const std::vector<TensorId> operands = {dy, node.inputs[0], node.inputs[1]};
  if (g.requires_grad(node.inputs[0]))
    g.add_gradient(node.inputs[0], g.op("conv_input_backward", operands, node.attributes));
  if (g.requires_grad(node.inputs[1]))
    g.add_gradient(node.inputs[1], g.op("conv_weight_backward", operands, node.attributes));
  if (node.inputs.size() == 3 && g.requires_grad(node.inputs[2]))
    g.add_gradient(node.inputs[2],
                   g.op("reduce_sum", {dy}, {{"shape", g.tensor(node.inputs[2]).shape}}));
}

std::vector<TensorSpec> infer_input_backward(const OpContext& context) {
  return {{.shape = context.input(1).shape, .dtype = context.input(0).dtype}};
}

std::vector<TensorSpec> infer_weight_backward(const OpContext& context) {
  return {{.shape = context.input(2).shape, .dtype = context.input(0).dtype}};
}

void work_conv_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  using Pass = Convolution::Pass;
  const bool of_weight = op_def(context.node.op).name == "conv_weight_backward";
  Kernel kernel =
      conv_kernel(conv_sizes(context, context.input(1), context.input(2)), context.output(0).dtype,
                  of_weight ? Pass::kWeightGradient : Pass::kInputGradient);
  kernel.read_bytes =
      checked_add(tensor_bytes(context.input(0)), tensor_bytes(context.input(of_weight ? 1 : 2)));
  kernel.write_bytes = tensor_bytes(context.output(0));
  kernels.push_back(kernel);
}

std::vector<SizeDef> sizes_by_name() {
  return {{.name = "batch", .doc = "images"},
          {.name = "in_channels", .doc = "of the images", .other_names = {"k", "channels"}},
          {.name = "out_channels", .doc = "of the result", .other_names = {"m"}},
          {.name = "depth", .doc = "layers of an image"},
          {.name = "height", .doc = "rows of an image", .other_names = {"n"}},
          width_size(),
          {.name = "window",
           .doc = "layers, rows and columns of the window",
           .default_value = int64_t{1}},
          {.name = "stride", .doc = "in each dimension"},
          {.name = "dilation", .doc = "in each dimension"},
          {.name = "groups", .doc = "of channels"},
          {.name = "transposed",
           .doc = "a transposed convolution",
           .default_value = int64_t{0},
           .min = 0,
           .max = 1}};
}

Operands conv_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t groups = s["groups"], in = s["in_channels"], out = s["out_channels"];
  if (in % groups != 0 || out % groups != 0)
    s.fail(fmt::format("{} groups do not divide {} and {} channels", groups, in, out));
  const bool transposed = s["transposed"] != 0;
  const Shape image = {s["batch"], in, s["depth"], s["height"], image_width(s)};
  const Shape weight = {transposed ? in : out, (transposed ? out : in) / groups, s["window"],
                        s["window"], s["window"]};
  return {{b.input("x", image, s.dtype()), b.input("w", weight, s.dtype())},
          {{"strides", Shape(kMostDims, s["stride"])},
           {"pads", Shape(kMostDims, checked_multiply(s["dilation"], s["window"] / 2))},
           {"dilations", Shape(kMostDims, s["dilation"])},
           {"groups", groups},
           {"transposed", s["transposed"]}}};
}

/// The operands of the forward pass and the gradient of its output.
Operands conv_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = conv_operands(b, s);
  const TensorId y = b.op("conv", operands.inputs, "y", operands.attributes);
  const Shape gradient = b.graph().tensor(y).shape;
  operands.inputs.insert(operands.inputs.begin(), b.input("dy", gradient, s.dtype()));
  return operands;
}

std::vector<AttributeDef> conv_attributes() {
  std::vector<AttributeDef> all = window_attributes();
  all.push_back({.name = "groups", .doc = "of channels", .default_value = int64_t{1}, .min = 1});
  all.push_back(flag_attribute("transposed", "1: the transpose of a convolution"));
  all.push_back({.name = "output_padding",
                 .doc = "of a transposed convolution, in each dimension; default: 0",
                 .type = AttributeType::kIntegers,
                 .default_value = Shape{}});
  all.push_back(flag_attribute("channels_last", "1: images are stored as [b, ..., c]"));
  return all;
}

OpDef conv_backward(std::string_view name, std::string_view doc, decltype(OpDef::infer) infer) {
  return {.name = name,
          .doc = doc,
          .aten = "aten::convolution_backward",
          .onnx = "",
          .min_inputs = 3,
          .max_inputs = 3,
          .attributes = conv_attributes(),
          .infer = infer,
          .work = work_conv_backward,
          .sizes = sizes_by_name(),
          .operands = conv_backward_operands,
          .example = "dy: fp32[2, 32, 32] x: fp32[2, 16, 32] w: fp32[32, 16, 3] {pads=[1]}"};
}

}  // namespace

std::vector<OpDef> convolution_nd_ops() {
  return {
      {.name = "conv",
       .doc = "x [b, c, ...] of one to three dimensions convolved with a weight [o, c / groups, "
              "...], or transposed with [c, o / groups, ...], plus bias [o]",
       .aten = "aten::convolution",
       .onnx = "ConvTranspose",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = conv_attributes(),
       .infer = infer_conv,
       .work = work_conv,
       .backward = backward_conv,
       .autocast = AutocastClass::kLowPrecision,
       .sizes = sizes_by_name(),
       .operands = conv_operands,
       .example = "x: fp32[2, 16, 8, 8] w: fp32[16, 4, 3, 3] b: fp32[8] {strides=[2, 2], pads=[1, "
                  "1], groups=2, transposed=1, output_padding=[1, 1]}"},
      conv_backward("conv_input_backward",
                    "gradient of the input of `conv`, from dy, x and the weight",
                    infer_input_backward),
      conv_backward("conv_weight_backward",
                    "gradient of the weight of `conv`, from dy, x and the weight",
                    infer_weight_backward)};
}

}  // namespace tilecast
