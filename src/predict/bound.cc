#include "predict/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "devices/vendor.h"
#include "predict/law.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

double matrix_peak_of(const Kernel& kernel, const Device& device) {
  const DType dtype = kernel.compute_dtype();
  const double peak = device.matmul_peak(dtype);
  if (peak > 0) return peak;
  std::vector<std::string> has;
  for (const std::string& name : dtype_names()) {
    if (device.matmul_peak(*find_dtype(name)) > 0) has.push_back(name);
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{} has no unit that multiplies {} matrices; it has: {}{}", device.id,
                          dtype_name(dtype), join(has, ", "),
                          weight_only(kernel.scheme) == kernel.scheme
                              ? ""
                              : fmt::format("; weights alone can be stored so ({})",
                                            scheme_info(weight_only(kernel.scheme)).name)));
}

/// Everything but matrix products runs on the vector lanes; types that they lack are computed in
/// FP32. Kernels of linear recurrences compute chunks of several tokens as matrix products.
double compute_s(const Kernel& kernel, double flops, const Device& device) {
  double peak = kernel.uses_matrix_units() ? matrix_peak_of(kernel, device)
                                           : std::max(device.gpu().vector_peak(kernel.dtype),
                                                      device.gpu().vector_peak(DType::kFp32));
  const Scan* scan = kernel.as<Scan>();
  if (scan != nullptr && scan->tokens > 1) peak = std::max(peak, device.matmul_peak(kernel.dtype));
  return flops / peak;
}

/// The FLOPs of the algorithm that needs the fewest. Winograd's F(4x4, 3x3) has 36 products for 16
/// pixels, FFTs have no fewer, and both are run in FP32 and without strides only.
double fewest_flops(const Kernel& kernel) {
  constexpr double kProductsOfPixel = 36.0 / 16;
  const auto flops = static_cast<double>(kernel.flops);
  const Convolution* c = kernel.as<Convolution>();
  if (c == nullptr || kernel.compute_dtype() != DType::kFp32 || c->stride != 1 || c->groups != 1)
    return flops;
  const auto taps = static_cast<double>(c->window_height * c->window_width);
  return flops * std::min(1.0, kProductsOfPixel / taps);
}

double tiles_of(const Gemm& gemm, Tile tile) {
  return static_cast<double>(gemm.batch) * static_cast<double>(ceil_divide(gemm.m, tile.m)) *
         static_cast<double>(ceil_divide(gemm.n, tile.n));
}

double tiles_of(const Attention& a) {
  if (a.is_decode()) return static_cast<double>(a.batch) * static_cast<double>(a.kv_heads);
  return static_cast<double>(a.batch) * static_cast<double>(a.heads) *
         static_cast<double>(ceil_divide(a.queries, kQueryTile));
}

double tiles_of(const Experts& e) {
  const double busy = std::max(1.0, e.active_experts);
  return busy * std::ceil(std::max(1.0, e.assignments / busy) / kExpertTile) *
         static_cast<double>(ceil_divide(e.ffn_dim, kExpertTile));
}

/// PyTorch's vectorized kernels: 128 threads of four elements a block.
double blocks_of(int64_t elements) {
  return static_cast<double>(ceil_divide(std::max<int64_t>(1, elements), 512));
}

struct CountTiles {
  const Kernel& kernel;
  Tile tile;

  double operator()(const Gemm& gemm) const { return tiles_of(gemm, tile); }
  double operator()(const Convolution&) const { return tiles_of(gemm_of(kernel), tile); }
  double operator()(const Attention& attention) const { return tiles_of(attention); }
  /// A head's state stays with one block.
  double operator()(const Scan& scan) const {
    return static_cast<double>(scan.batch) * static_cast<double>(scan.heads);
  }
  double operator()(const Experts& experts) const { return tiles_of(experts); }
  double operator()(const EmbeddingBag& bag) const {
    return static_cast<double>(bag.tables) * blocks_of(bag.bags * bag.dim);
  }
  double operator()(const Rows& rows) const { return static_cast<double>(rows.rows); }
  double operator()(const Stream& stream) const {
    return block_rows_of(kernel) ? static_cast<double>(stream.rows) : blocks_of(stream.elements);
  }
  double operator()(const Collective& collective) const { return blocks_of(collective.elements); }
};

}  // namespace

Bound physical_bound(const Kernel& kernel, const Device& device, Caches caches) {
  const auto bytes = static_cast<double>(kernel.bytes());
  const double beyond = caches == Caches::kCold
                            ? bytes
                            : std::max(0.0, bytes - static_cast<double>(device.gpu().l2_bytes));
  // How wide the memories on a systolic chip are is not known: its bound is DRAM's.
  const double from_l2 =
      is_systolic(device.gpu().architecture) ? 0 : bytes / device.gpu().l2_bytes_per_s();
  return {.compute_s = compute_s(kernel, fewest_flops(kernel), device),
          .memory_s = std::max(beyond / device.memory_bytes_per_s, from_l2)};
}

Bound roofline_bound(const Kernel& kernel, const Device& device) {
  return {.compute_s = compute_s(kernel, static_cast<double>(kernel.flops), device),
          .memory_s = static_cast<double>(kernel.bytes()) / device.memory_bytes_per_s};
}

bool has_unit_for(const Kernel& kernel, const Device& device) {
  return !kernel.uses_matrix_units() || device.matmul_peak(kernel.compute_dtype()) > 0;
}

Waves count_waves(const Kernel& kernel, const Device& device, Tile tile) {
  const double tiles = std::visit(CountTiles{kernel, tile}, kernel.shape);
  const double per_wave = static_cast<double>(device.gpu().sm_count);
  Waves result{.tiles = tiles};
  result.waves = std::max(1.0, std::ceil(tiles / per_wave));
  result.occupancy = tiles / (result.waves * per_wave);
  return result;
}

}  // namespace tilecast
