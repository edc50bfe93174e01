#include "predict/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

const std::vector<std::string_view> kMatmulFeatures = {
    "log2_compute_us", "log2_memory_us",   "log2_m",
    "log2_n",          "log2_k",           "log2_batch",
    "log2_tile_m",     "log2_tile_n",      "log2_tiles_per_sm",
    "wave_occupancy",  "tile_fill",        "log2_bytes_per_l2",
    "log2_balance",    "log2_pj_per_flop", "align_n",
    "align_k",         "is_linear",        "matrix_ratio",
    "occupancy_64",    "log2_l2_per_sm"};

const std::vector<std::string_view> kElementwiseFeatures = {
    "log2_memory_us", "log2_bytes_per_l2",       "log2_elements_per_thread",
    "read_share",     "log2_intensity",          "log2_bytes_per_sm_clock",
    "log2_l2_per_sm", "log2_power_per_bandwidth"};

const std::vector<std::string_view> kRowFeatures = {
    "log2_memory_us", "log2_bytes_per_l2",       "log2_columns",   "log2_rows_per_sm",
    "read_share",     "log2_bytes_per_sm_clock", "log2_l2_per_sm", "log2_row_bytes_per_on_chip"};

float lg(double x) { return std::log2(static_cast<float>(std::max(x, 1e-30))); }

/// log2 of the largest power of two up to 32 that divides x, as a share of 5.
float alignment(int64_t x) {
  int bits = 0;
  while (bits < 5 && x > 0 && (x >> bits) % 2 == 0) ++bits;
  return static_cast<float>(bits) / 5.0f;
}

float read_share(const Kernel& kernel) {
  return static_cast<float>(static_cast<double>(kernel.read_bytes) /
                            static_cast<double>(std::max<int64_t>(1, kernel.bytes())));
}

/// DRAM bytes per SM and clock: how wide the memory system is against the cores.
float bytes_per_sm_clock(const Device& d) {
  return lg(d.memory_bytes_per_s / (static_cast<double>(d.sm_count) * d.boost_clock_hz));
}

float l2_per_sm(const Device& d) {
  return lg(static_cast<double>(d.l2_bytes) / static_cast<double>(d.sm_count));
}

}  // namespace

std::string_view net_name(NetKind kind) {
  switch (kind) {
    case NetKind::kMatmul:
      return "matmul";
    case NetKind::kElementwise:
      return "elementwise";
    case NetKind::kSoftmax:
      return "softmax";
    case NetKind::kLayerNorm:
      return "layer_norm";
  }
  return "";
}

NetKind net_of(KernelFamily family) {
  switch (family) {
    case KernelFamily::kBmm:
    case KernelFamily::kLinear:
      return NetKind::kMatmul;
    case KernelFamily::kSoftmax:
      return NetKind::kSoftmax;
    case KernelFamily::kLayerNorm:
      return NetKind::kLayerNorm;
    case KernelFamily::kElementwise:
    case KernelFamily::kMemory:
      break;
  }
  return NetKind::kElementwise;
}

const std::vector<std::string_view>& feature_names(NetKind kind) {
  if (kind == NetKind::kMatmul) return kMatmulFeatures;
  return kind == NetKind::kElementwise ? kElementwiseFeatures : kRowFeatures;
}

Bound physical_bound(const Kernel& kernel, const Device& device) {
  Bound bound;
  double peak = 0;
  if (kernel.is_matmul()) {
    peak = device.matmul_peak(kernel.dtype);
    if (peak == 0) {
      std::vector<std::string> has;
      for (const std::string& name : dtype_names()) {
        if (device.matmul_peak(*find_dtype(name)) > 0) has.push_back(name);
      }
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{} has no unit that multiplies {} matrices; it has: {}", device.id,
                              dtype_name(kernel.dtype), join(has, ", ")));
    }
  } else {
    // Everything but matrix products runs on the vector lanes; narrow types are computed wider.
    peak = std::max(device.vector_peak(kernel.dtype), device.vector_peak(DType::kFp32));
  }
  bound.compute_s = static_cast<double>(kernel.flops) / peak;
  // At best all of L2 is warm: what exceeds it comes from DRAM, everything passes through L2.
  const auto bytes = static_cast<double>(kernel.bytes());
  const double cold = std::max(0.0, bytes - static_cast<double>(device.l2_bytes));
  bound.memory_s = std::max(cold / device.memory_bytes_per_s, bytes / device.l2_bytes_per_s());
  return bound;
}

Waves count_waves(const Kernel& kernel, const Device& device, Tile tile) {
  Waves result;
  if (kernel.is_matmul()) {
    result.tiles = static_cast<double>(kernel.batch) *
                   static_cast<double>(ceil_divide(kernel.m, tile.m)) *
                   static_cast<double>(ceil_divide(kernel.n, tile.n));
  } else if (kernel.family == KernelFamily::kSoftmax || kernel.family == KernelFamily::kLayerNorm) {
    result.tiles = static_cast<double>(kernel.m);
  } else {
    // PyTorch's vectorized kernels: 128 threads of four elements a block.
    result.tiles = static_cast<double>(ceil_divide(std::max<int64_t>(1, kernel.n), 512));
  }
  const double per_wave = static_cast<double>(device.sm_count);
  result.waves = std::max(1.0, std::ceil(result.tiles / per_wave));
  result.occupancy = result.tiles / (result.waves * per_wave);
  return result;
}

Features make_features(const Kernel& kernel, const Device& device, const Bound& bound, Tile tile) {
  Features f{};
  const auto bytes = static_cast<double>(kernel.bytes());
  const double dram_us = bytes / device.memory_bytes_per_s * 1e6;
  const float per_l2 = lg(bytes / static_cast<double>(device.l2_bytes));
  const auto sm = static_cast<double>(device.sm_count);
  switch (net_of(kernel.family)) {
    case NetKind::kMatmul: {
      const Waves waves = count_waves(kernel, device, tile);
      const Waves small = count_waves(kernel, device, {64, 64});
      const double peak = device.matmul_peak(kernel.dtype);
      const double outputs = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                             static_cast<double>(kernel.n);
      f = {lg(bound.compute_s * 1e6),
           lg(dram_us),
           lg(static_cast<double>(kernel.m)),
           lg(static_cast<double>(kernel.n)),
           lg(static_cast<double>(kernel.k)),
           lg(static_cast<double>(kernel.batch)),
           lg(tile.m),
           lg(tile.n),
           lg(waves.tiles / sm),
           static_cast<float>(waves.occupancy),
           static_cast<float>(outputs / (waves.tiles * tile.m * tile.n)),
           per_l2,
           lg(peak / device.memory_bytes_per_s),
           lg(device.board_power_w / peak * 1e12),
           alignment(kernel.n),
           alignment(kernel.k),
           kernel.family == KernelFamily::kLinear ? 1.0f : 0.0f,
           lg(peak / std::max(1.0, device.vector_peak(DType::kFp32))),
           static_cast<float>(small.occupancy),
           l2_per_sm(device)};
      break;
    }
    case NetKind::kElementwise:
      f = {lg(dram_us),
           per_l2,
           lg(static_cast<double>(kernel.n) * static_cast<double>(std::max<int64_t>(1, kernel.m)) /
              (sm * static_cast<double>(device.threads_per_sm))),
           read_share(kernel),
           lg((1.0 + static_cast<double>(kernel.flops)) / std::max(1.0, bytes)),
           bytes_per_sm_clock(device),
           l2_per_sm(device),
           lg(device.board_power_w / device.memory_bytes_per_s * 1e12)};
      break;
    case NetKind::kSoftmax:
    case NetKind::kLayerNorm:
      f = {lg(dram_us),
           per_l2,
           lg(static_cast<double>(kernel.n)),
           lg(static_cast<double>(kernel.m) / sm),
           read_share(kernel),
           bytes_per_sm_clock(device),
           l2_per_sm(device),
           lg(static_cast<double>(kernel.n * dtype_bytes(kernel.dtype)) /
              static_cast<double>(device.on_chip_bytes_per_sm))};
      break;
  }
  return f;
}

}  // namespace tilecast
