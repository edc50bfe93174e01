#include "api/accelerator_layers.h"

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

KernelLayer of_convolution(const Convolution& conv, const Node& node) {
  const int64_t stride = attribute<int64_t>(node, "stride");
  const bool depthwise = conv.groups > 1 && conv.groups == conv.in_channels;
  Layer layer{.kind = depthwise ? LayerKind::kDepthwise : LayerKind::kProduct, .stride = stride};
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

std::optional<KernelLayer> layer_of(const Kernel& kernel, const Node& node) {
  if (const Gemm* gemm = kernel.as<Gemm>()) return of_product(*gemm);
  if (const Convolution* conv = kernel.as<Convolution>())
    if (conv->pass == Convolution::Pass::kForward) return of_convolution(*conv, node);
  if (const Stream* stream = kernel.as<Stream>()) return of_stream(*stream, kernel);
  return std::nullopt;
}

}  // namespace tilecast
