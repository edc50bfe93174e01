// Convolutions, pooling and resizing.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "importers/onnx/shapes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

Shape spatial(const Shape& shape) {
  return shape.size() < 2 ? Shape{} : Shape(shape.begin() + 2, shape.end());
}

/// Attributes of a window with a number for each dimension.
struct Window {
  Shape size, strides, dilations, pads;  ///< pads: all beginnings, then all ends
};

Window window_of(const OnnxCall& call, const Shape& in, Shape size) {
  const size_t dims = in.size();
  Window w{.size = std::move(size),
           .strides = call.list("strides"),
           .dilations = call.list("dilations"),
           .pads = call.list("pads")};
  if (w.strides.empty()) w.strides.assign(dims, 1);
  if (w.dilations.empty()) w.dilations.assign(dims, 1);
  if (w.pads.empty()) w.pads.assign(2 * dims, 0);
  if (dims == 0 || w.size.size() != dims || w.strides.size() != dims ||
      w.dilations.size() != dims || w.pads.size() != 2 * dims)
    call.fail(fmt::format("the window's attributes do not fit {} dimensions", dims));
  for (size_t d = 0; d < dims; ++d) {
    constexpr int64_t kLargest = int64_t{1} << 31;
    const bool fits = w.size[d] >= 1 && w.strides[d] >= 1 && w.dilations[d] >= 1 &&
                      w.strides[d] <= kLargest && w.dilations[d] <= kLargest;
    if (!fits) call.fail("expected sizes, strides and dilations of 1 or more");
    for (const int64_t pad : {w.pads[d], w.pads[dims + d]}) {
      if (pad < 0 || pad > kLargest)
        call.fail(fmt::format("expected pads of 0 or more, up to {}, found {}", kLargest, pad));
    }
  }
  // SAME: as many positions as in / stride, rounded up; the odd pad at the end, or at the
  // beginning.
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (!automatic.starts_with("SAME")) return w;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t out = ceil_divide(in[d], w.strides[d]);
    const int64_t reach = checked_add(checked_multiply(w.dilations[d], w.size[d] - 1), 1);
    const int64_t last = (out - 1) * w.strides[d];  // less than in[d]
    const int64_t pad = std::max<int64_t>(0, checked_add(last - in[d], reach));
    const int64_t more = pad - pad / 2;
    w.pads[d] = automatic == "SAME_UPPER" ? pad / 2 : more;
    w.pads[dims + d] = pad - w.pads[d];
  }
  return w;
}

bool alike(const Shape& list) {
  return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v == list.front(); });
}

/// Whether the short form of convolutions of images covers it.
bool is_plain(const Window& w) {
  const bool dense =
      std::all_of(w.dilations.begin(), w.dilations.end(), [](int64_t d) { return d == 1; });
  return w.size.size() == 2 && dense && alike(w.strides) && alike(w.pads);
}

std::vector<TensorId> operands(OnnxCall& call) {
  std::vector<TensorId> inputs = {call.tensor(0), call.tensor(1)};
  if (call.has(2)) inputs.push_back(call.tensor(2));
  return inputs;
}

void translate_conv(OnnxCall& call) {
  const Shape in = spatial(call.shape(0)), weight = spatial(call.shape(1));
  call.name_after(1);
  const Window w = window_of(call, in, weight);
  const int64_t groups = call.integer("group", 1);
  if (is_plain(w))
    return call.set(
        0, call.op("conv2d", operands(call),
                   {{"stride", w.strides[0]}, {"padding", w.pads[0]}, {"groups", groups}}));
  call.set(0, call.op("conv", operands(call),
                      {{"strides", w.strides},
                       {"pads", w.pads},
                       {"dilations", w.dilations},
                       {"groups", groups}}));
}

void translate_conv_transpose(OnnxCall& call) {
  const Shape in = spatial(call.shape(0)), weight = spatial(call.shape(1));
  call.name_after(1);
  Window w = window_of(call, in, weight);
  Shape more = call.list("output_padding");
  const Shape wanted = call.list("output_shape");
  const size_t dims = in.size();
  if (more.empty()) more.assign(dims, 0);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (more.size() != dims || (!wanted.empty() && wanted.size() < dims))
    call.fail("output_padding or output_shape does not fit the input");
  for (size_t d = 0; d < dims; ++d) {
    constexpr int64_t kLargest = int64_t{1} << 31;
    const int64_t asked = wanted.empty() ? 1 : wanted[wanted.size() - dims + d];
    if (more[d] < 0 || more[d] > kLargest || asked < 1 || asked > kLargest)
      call.fail("expected an output_padding of 0 or more and an output_shape of 1 or more");
    // The output's size decides the pads.
    const int64_t reach = checked_add(checked_multiply(w.dilations[d], weight[d] - 1), 1 + more[d]);
    const int64_t full = checked_add(checked_multiply(in[d] - 1, w.strides[d]), reach);
    int64_t size = full - w.pads[d] - w.pads[dims + d];
    if (!wanted.empty()) size = asked;
    if (automatic.starts_with("SAME")) size = checked_multiply(in[d], w.strides[d]);
    if (size > full) {
      more[d] += size - full;
      size = full;
      w.pads[d] = w.pads[dims + d] = 0;
    } else {
      w.pads[d] = (full - size) / 2;
      w.pads[dims + d] = full - size - w.pads[d];
    }
  }
  call.set(0, call.op("conv", operands(call),
                      {{"strides", w.strides},
                       {"pads", w.pads},
                       {"dilations", w.dilations},
                       {"groups", call.integer("group", 1)},
                       {"transposed", 1},
                       {"output_padding", more}}));
}

std::vector<Attribute> pool_attributes(const OnnxCall& call, const Window& w) {
  return {{"window", w.size},
          {"strides", w.strides},
          {"pads", w.pads},
          {"dilations", w.dilations},
          {"ceil", call.integer("ceil_mode", 0)}};
}

void translate_max_pool(OnnxCall& call) {
  const Window w = window_of(call, spatial(call.shape(0)), call.list("kernel_shape"));
  if (is_plain(w) && alike(w.size) && call.integer("ceil_mode", 0) == 0) {
    const std::vector<TensorId> results =
        call.add("max_pool2d", {call.tensor(0)},
                 {{"window", w.size[0]}, {"stride", w.strides[0]}, {"padding", w.pads[0]}});
    call.set(0, results[0]);
    return call.set(1, results[1]);
  }
  const std::vector<TensorId> results =
      call.add("max_pool", {call.tensor(0)}, pool_attributes(call, w));
  call.set(0, results[0]);
  call.set(1, results[1]);
}

void translate_avg_pool(OnnxCall& call) {
  const Window w = window_of(call, spatial(call.shape(0)), call.list("kernel_shape"));
  call.set(0, call.op("avg_pool", {call.tensor(0)}, pool_attributes(call, w)));
}

/// As torch.nn.LPPool2d: powers, their mean, its product with the window's size, the root.
void translate_lp_pool(OnnxCall& call) {
  const Window w = window_of(call, spatial(call.shape(0)), call.list("kernel_shape"));
  const TensorId power = call.op("pow_scalar", {call.tensor(0)});
  const TensorId mean = call.op("avg_pool", {power}, pool_attributes(call, w));
  call.set(0, call.op("pow_scalar", {call.op("mul_scalar", {mean})}));
}

/// All dimensions of an image to one.
void translate_global(OnnxCall& call) {
  const size_t rank = call.shape(0).size();
  Shape axes;
  for (size_t d = 2; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  if (axes.empty()) call.fail("expected [b, c, ...]");
  const bool max = call.node().op == "GlobalMaxPool";
  TensorId x = call.tensor(0);
  const bool power = call.node().op == "GlobalLpPool";
  if (power) x = call.op("pow_scalar", {x});
  x = call.reduce(max ? "reduce_extreme" : power ? "reduce_sum" : "reduce_mean", x, axes, true);
  call.set(0, power ? call.op("pow_scalar", {x}) : x);
}

/// New sizes, from `sizes` or from factors.
Shape resized(const OnnxCall& call) {
  Shape shape = call.shape(0);
  const bool upsample = call.node().op == "Upsample";
  const size_t scales = upsample ? 1 : 2;
  Shape axes = call.list("axes");
  if (axes.empty()) {
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  }
  if (!upsample && call.has(3)) {
    const Shape sizes = call.integers(3, "the sizes");
    if (sizes.size() != axes.size()) call.fail("expected a size for each dimension");
    for (size_t i = 0; i < axes.size(); ++i) shape[call.axis(axes[i], shape.size())] = sizes[i];
    return shape;
  }
  const OnnxConstant* factors = call.constant(scales);
  std::vector<double> values;
  if (factors != nullptr) {
    for (size_t i = 0; i < factors->size(); ++i) values.push_back(factors->number(i));
  } else if (call.weight(scales) != nullptr && call.weight(scales)->values != nullptr) {
    values = call.weight(scales)->values->numbers;
  }
  if (values.size() != axes.size())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("node '{}' (Resize): the factors are computed from the data of the "
                            "model's inputs",
                            call.node().name));
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& size = shape[call.axis(axes[i], shape.size())];
    const double scaled = std::floor(static_cast<double>(size) * values[i]);
    constexpr double kLargest = 1e12;
    if (!(scaled >= 1) || scaled > kLargest) call.fail(fmt::format("a factor of {}", values[i]));
    size = static_cast<int64_t>(scaled);
  }
  return shape;
}

void translate_resize(OnnxCall& call) {
  const Shape from = call.shape(0), to = resized(call);
  const TensorId x = call.tensor(0);
  const std::string mode = call.text("mode", "nearest");
  const bool doubled =
      from.size() == 4 && mode == "nearest" &&
      to == Shape{from[0], from[1], checked_multiply(2, from[2]), checked_multiply(2, from[3])};
  if (doubled) return call.set(0, call.op("upsample", {x}));
  call.set(0, call.op("resize", {x}, {{"shape", to}, {"mode", mode}}));
}

void translate_grid_sample(OnnxCall& call) {
  call.set(0, call.op("grid_sample", {call.tensor(0), call.tensor(1)}));
}

/// Blocks of channels become blocks of pixels, or the reverse: a copy in another order.
void translate_blocks(OnnxCall& call) {
  const Shape s = call.shape(0);
  const int64_t block = call.integer("blocksize", 0);
  const bool to_space = call.node().op == "DepthToSpace";
  const bool fits =
      s.size() == 4 && block >= 1 && block <= INT32_MAX &&
      (to_space ? s[1] % (block * block) == 0 : s[2] % block == 0 && s[3] % block == 0);
  if (!fits) call.fail(fmt::format("blocks of {} do not fit {}", block, format_shape(s)));
  const TensorId x = call.tensor(0);
  if (to_space) {
    const int64_t c = s[1] / (block * block);
    const TensorId parts = call.reshape(x, {s[0], c, block, block, s[2], s[3]});
    return call.set(
        0, call.reshape(call.transpose(parts, {0, 1, 4, 2, 5, 3}),
                        {s[0], c, checked_multiply(s[2], block), checked_multiply(s[3], block)}));
  }
  const int64_t h = s[2] / block, w = s[3] / block;
  const TensorId parts = call.reshape(x, {s[0], s[1], h, block, w, block});
  call.set(0, call.reshape(call.transpose(parts, {0, 3, 5, 1, 2, 4}),
                           {s[0], checked_product({s[1], block, block}), h, w}));
}

}  // namespace

std::vector<OnnxOp> onnx_window_ops() {
  return {{"Conv", translate_conv},
          {"ConvTranspose", translate_conv_transpose},
          {"MaxPool", translate_max_pool},
          {"AveragePool", translate_avg_pool},
          {"LpPool", translate_lp_pool},
          {"GlobalAveragePool", translate_global},
          {"GlobalMaxPool", translate_global},
          {"GlobalLpPool", translate_global},
          {"Resize", translate_resize},
          {"Upsample", translate_resize},
          {"GridSample", translate_grid_sample},
          {"DepthToSpace", translate_blocks},
          {"SpaceToDepth", translate_blocks}};
}

}  // namespace tilecast
