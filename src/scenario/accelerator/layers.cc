#include "scenario/accelerator/layers.h"

#include <algorithm>

#include "ops/attributes.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

using accelerator::Layer;
using accelerator::LayerKind;

/// Sizes in the order of accelerator::Dim: n, k, c, p, q, r, s.
KernelLayer of_product(const Gemm& gemm) {
  return {{.kind = LayerKind::kProduct, .sizes = {1, gemm.n, gemm.k, gemm.m, 1, 1, 1}}, gemm.batch};
}

KernelLayer of_convolution(const Convolution& conv) {
  const bool depthwise = conv.groups > 1 && conv.groups == conv.in_channels;
  Layer layer{.kind = depthwise ? LayerKind::kDepthwise : LayerKind::kProduct,
              .stride = conv.stride};
  const int64_t groups = depthwise ? 1 : conv.groups;
  layer.sizes = {conv.batch,
                 conv.out_channels / groups,
                 depthwise ? 1 : conv.in_channels / groups,
                 conv.out_height,
                 conv.out_width,
                 conv.window_height,
                 conv.window_width};
  return {layer, groups};
}

/// Window and stride along rows and columns; windows of one dimension have a row of one.
struct Window {
  int64_t rows = 1, columns = 1, stride = 1;
};

/// nullopt if the operator has no window, or one that a layer cannot have.
std::optional<Window> window_of(const Node& node, const Shape& in, const Shape& out) {
  const OpDef& op = op_def(node.op);
  const AttributeDef* window = find_attribute_def(op, "window");
  if (window != nullptr && window->type == AttributeType::kInteger &&
      find_attribute_def(op, "stride") != nullptr) {
    const auto size = attribute<int64_t>(node, "window");
    return Window{size, size, attribute<int64_t>(node, "stride")};
  }
  const size_t dims = out.size() - 2;
  if (window != nullptr && window->type == AttributeType::kIntegers) {
    const auto size = attribute<Shape>(node, "window");
    auto strides = attribute<Shape>(node, "strides");
    if (strides.empty()) strides = size;
    if (size.size() != dims || strides.size() != dims || strides.front() != strides.back())
      return std::nullopt;
    return Window{dims == 1 ? 1 : size.front(), size.back(), strides.back()};
  }
  // A pooling to a given shape: equal windows side by side, if the sizes divide.
  const AttributeDef* shape = find_attribute_def(op, "shape");
  if (shape == nullptr || shape->type != AttributeType::kIntegers || dims != 2) return std::nullopt;
  if (out[2] == 0 || out[3] == 0 || in[2] % out[2] != 0 || in[3] % out[3] != 0) return std::nullopt;
  const int64_t rows = in[2] / out[2], columns = in[3] / out[3];
  if (rows != columns) return std::nullopt;
  return Window{rows, columns, rows};
}

/// Windows over [n, k, columns] or [n, k, rows, columns]: an operation for each element of each
/// window.
std::optional<KernelLayer> of_pooling(const Node& node, const Graph& graph, int64_t operations) {
  if (node.inputs.size() != 1 || node.outputs.empty()) return std::nullopt;
  const Shape& in = graph.tensor(node.inputs.front()).shape;
  const Shape& out = graph.tensor(node.outputs.front()).shape;
  if ((out.size() != 3 && out.size() != 4) || in.size() != out.size() || in[1] != out[1])
    return std::nullopt;
  const std::optional<Window> window = window_of(node, in, out);
  if (!window || window->rows * window->columns == 1) return std::nullopt;
  if (operations != element_count(out) * window->rows * window->columns) return std::nullopt;
  const int64_t rows = out.size() == 4 ? out[2] : 1;
  return KernelLayer{{.kind = LayerKind::kPooling,
                      .sizes = {out[0], out[1], 1, rows, out.back(), window->rows, window->columns},
                      .stride = window->stride}};
}

/// Sums and activations; what reads more than it writes by far is a reduction, for the host.
std::optional<KernelLayer> of_stream(const Stream& stream, const Kernel& kernel) {
  // Fewer elements are written than read by a reduction, which is no such layer.
  const int64_t elements = stream.rows * stream.elements;
  if (kernel.write_bytes <= 0 ||
      (stream.rows != 1 && kernel.write_bytes < elements * dtype_bits(kernel.dtype) / 8))
    return std::nullopt;
  const int64_t inputs =
      std::clamp<int64_t>((kernel.read_bytes + kernel.write_bytes / 2) / kernel.write_bytes, 1, 8);
  if (kernel.read_bytes > 4 * kernel.write_bytes) return std::nullopt;
  // Rows of 64 elements: any length of row that is a multiple of the array takes as long.
  constexpr int64_t kRow = 64;
  return KernelLayer{{.kind = LayerKind::kElementwise,
                      .sizes = {1, kRow, 1, (elements + kRow - 1) / kRow, 1, 1, 1},
                      .inputs = inputs}};
}

}  // namespace

std::optional<KernelLayer> layer_of(const Kernel& kernel, const Node& node, const Graph& graph) {
  if (const Gemm* gemm = kernel.as<Gemm>()) return of_product(*gemm);
  if (const Convolution* conv = kernel.as<Convolution>())
    if (conv->pass == Convolution::Pass::kForward) return of_convolution(*conv);
  if (const Stream* stream = kernel.as<Stream>()) {
    if (auto pooling = of_pooling(node, graph, kernel.flops)) return pooling;
    return of_stream(*stream, kernel);
  }
  return std::nullopt;
}

int64_t macs_of(const Kernel& kernel) { return kernel.uses_matrix_units() ? kernel.flops / 2 : 0; }

}  // namespace tilecast
