#include "predict/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// All features are free of units, so that they carry over to devices of another size; absolute
// times and raw rates would name the few devices that were measured (docs/accuracy.md, what was
// tried).
const std::vector<std::string_view> kMatmulFeatures = {
    "log2_tile_reuse", "log2_few_tiles_per_sm", "wave_occupancy", "occupancy_64", "tile_fill",
    "log2_low_intensity", "log2_short_k", "align_m", "align_n", "align_k", "on_matrix_unit",
    // What follows is not shared by all devices: how sizes beyond the tile and the library's entry
    // point matter differs in ways that no data sheet tells (P100's linear products fall to a third
    // of its rate with size, its batched ones do not).
    "log2_tile_m", "log2_tile_n", "log2_tiles_per_sm", "log2_intensity", "log2_m", "log2_n",
    "log2_k", "log2_bytes_per_l2", "stride_n", "stride_k", "is_linear"};
constexpr size_t kSharedMatmulFeatures = 11;

// Which tile the library picks for narrow types is not known: the fill of three usual ones stands
// for it.
const std::vector<std::string_view> kTensorMatmulFeatures = {
    "log2_few_tiles_per_sm", "occupancy_128", "occupancy_64", "fill_m_64", "fill_n_128",
    "log2_low_intensity", "log2_short_k", "align_m", "align_n", "align_k", "log2_low_m",
    "log2_element_bytes", "log2_bound", "on_matrix_unit", "is_amd", "is_trtllm",
    // Not shared by all devices.
    "log2_tiles_per_sm", "log2_intensity", "log2_m", "log2_n", "log2_k", "log2_bytes_per_l2",
    "stride_n", "stride_k"};
constexpr size_t kSharedTensorMatmulFeatures = 16;

// Kernels that stream memory come in more kinds than were measured: no two features here may be
// tied to each other in the measured ones, or the networks could say anything where the tie is
// broken.
const std::vector<std::string_view> kElementwiseFeatures = {"log2_bytes_per_l2",
                                                            "log2_flops_per_byte"};

const std::vector<std::string_view> kRowFeatures = {"log2_bytes_per_l2", "log2_columns",
                                                    "log2_process_node", "is_amd"};

float lg(double x) { return std::log2(static_cast<float>(std::max(x, 1e-30))); }

/// log2 of the largest power of two up to 2^limit that divides x, as a share of limit.
float alignment(int64_t x, int limit = 5) {
  int bits = 0;
  while (bits < limit && x > 0 && (x >> bits) % 2 == 0) ++bits;
  return static_cast<float>(bits) / static_cast<float>(limit);
}

/// Strides of large powers of two fall on the same memory channels and cache sets.
constexpr int kStrideBits = 12;

/// Newer NVIDIA devices come nearer to their bandwidth in kernels that go over rows twice; the
/// process node stands for the generation. AMD's kernels are others: one level for all.
float generation(const Device& device) {
  constexpr double kUnknownNode = 5;  // of current data-center GPUs
  return device.vendor == "amd" ? 4.0f : lg(device.process_nm.value_or(kUnknownNode));
}

}  // namespace

double shortest_kernel_s(NetKind kind, const Device& device) {
  // The smallest measured take 2.5 us on A100 (1.41 GHz), 2.5 on H100 (1.98), 1.65 on L40S (2.52).
  constexpr double kCycles = 3500;  // the least of the three
  return kind == NetKind::kTensorMatmul ? kCycles / device.boost_clock_hz : kShortestKernel;
}

float lowest_logit(NetKind kind) {
  switch (kind) {
    case NetKind::kMatmul:
      return -4.6f;  // 1 %: about one tile on a device of a hundred SMs
    case NetKind::kTensorMatmul:
      return -12.0f;  // the smallest measured take microseconds for nanoseconds of traffic
    case NetKind::kElementwise:
      return -6.0f;  // 0.25 %: the bound of small kernels is that of L2
    case NetKind::kSoftmax:
    case NetKind::kLayerNorm:
      break;
  }
  return -5.0f;
}

std::string_view net_name(NetKind kind) {
  switch (kind) {
    case NetKind::kMatmul:
      return "matmul";
    case NetKind::kTensorMatmul:
      return "tensor_matmul";
    case NetKind::kElementwise:
      return "elementwise";
    case NetKind::kSoftmax:
      return "softmax";
    case NetKind::kLayerNorm:
      return "layer_norm";
  }
  return "";
}

NetKind net_of(const Kernel& kernel) {
  switch (kernel.family) {
    case KernelFamily::kBmm:
    case KernelFamily::kLinear:
      return kernel.dtype == DType::kFp32 ? NetKind::kMatmul : NetKind::kTensorMatmul;
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
  if (kind == NetKind::kTensorMatmul) return kTensorMatmulFeatures;
  return kind == NetKind::kElementwise ? kElementwiseFeatures : kRowFeatures;
}

size_t shared_feature_count(NetKind kind) {
  if (kind == NetKind::kMatmul) return kSharedMatmulFeatures;
  return kind == NetKind::kTensorMatmul ? kSharedTensorMatmulFeatures : feature_names(kind).size();
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
  bound.law_s = bound.seconds();
  if (net_of(kernel) == NetKind::kTensorMatmul)
    bound.law_s = std::max(bound.law_s, bytes / device.memory_bytes_per_s);
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
  const double dram_s = std::max(1.0, bytes) / device.memory_bytes_per_s;
  const float per_l2 = lg(bytes / static_cast<double>(device.l2_bytes));
  const auto sm = static_cast<double>(device.sm_count);
  switch (net_of(kernel)) {
    case NetKind::kMatmul: {
      const Waves waves = count_waves(kernel, device, tile);
      const Waves small = count_waves(kernel, device, {64, 64});
      const double outputs = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                             static_cast<double>(kernel.n);
      const float tiles_per_sm = lg(waves.tiles / sm);
      const float intensity = lg(bound.compute_s / dram_s);
      // Features of the shared law end where more of them changes nothing any more, so that a
      // device with more of it is no unknown land.
      f = {lg(static_cast<double>(tile.m) * tile.n / (tile.m + tile.n)),
           std::clamp(tiles_per_sm, -5.0f, 4.0f),
           static_cast<float>(waves.occupancy),
           static_cast<float>(small.occupancy),
           static_cast<float>(outputs / (waves.tiles * tile.m * tile.n)),
           std::clamp(intensity, -3.0f, 4.0f),
           lg(static_cast<double>(std::min<int64_t>(kernel.k, 1024))),
           alignment(kernel.m),
           alignment(kernel.n),
           alignment(kernel.k),
           device.matrix_peak(kernel.dtype) > 0 ? 1.0f : 0.0f,
           lg(tile.m),
           lg(tile.n),
           tiles_per_sm,
           intensity,
           lg(static_cast<double>(kernel.m)),
           lg(static_cast<double>(kernel.n)),
           lg(static_cast<double>(kernel.k)),
           per_l2,
           alignment(kernel.n, kStrideBits),
           alignment(kernel.k, kStrideBits),
           kernel.family == KernelFamily::kLinear ? 1.0f : 0.0f};
      break;
    }
    case NetKind::kTensorMatmul: {
      const Waves large = count_waves(kernel, device, {128, 128});
      const Waves small = count_waves(kernel, device, {64, 64});
      const float tiles_per_sm = lg(large.tiles / sm);
      const float intensity = lg(bound.compute_s / dram_s);
      const auto fill = [](int64_t size, int64_t tile) {
        return static_cast<float>(size) / static_cast<float>(ceil_divide(size, tile) * tile);
      };
      f = {std::clamp(tiles_per_sm, -7.0f, 4.0f), static_cast<float>(large.occupancy),
           static_cast<float>(small.occupancy), fill(kernel.m, 64), fill(kernel.n, 128),
           std::clamp(intensity, -6.0f, 3.0f),
           lg(static_cast<double>(std::min<int64_t>(kernel.k, 4096))), alignment(kernel.m),
           alignment(kernel.n), alignment(kernel.k),
           lg(static_cast<double>(std::min<int64_t>(kernel.m, 256))),
           lg(static_cast<double>(dtype_bytes(kernel.dtype))),
           std::clamp(lg(bound.law_s / shortest_kernel_s(NetKind::kTensorMatmul, device)), -12.0f,
                      8.0f),
           device.matrix_peak(kernel.dtype) > 0 ? 1.0f : 0.0f, device.vendor == "amd" ? 1.0f : 0.0f,
           // vLLM, SGLang and PyTorch call the same library (cuBLAS).
           kernel.software == Software::kTensorRtLlm ? 1.0f : 0.0f, tiles_per_sm, intensity,
           lg(static_cast<double>(kernel.m)), lg(static_cast<double>(kernel.n)),
           lg(static_cast<double>(kernel.k)), per_l2, alignment(kernel.n, kStrideBits),
           alignment(kernel.k, kStrideBits)};
      break;
    }
    case NetKind::kElementwise:
      f = {per_l2, lg((1.0 + static_cast<double>(kernel.flops)) / std::max(1.0, bytes))};
      break;
    case NetKind::kSoftmax:
    case NetKind::kLayerNorm:
      f = {per_l2, lg(static_cast<double>(kernel.n)), generation(device),
           device.vendor == "amd" ? 1.0f : 0.0f};
      break;
  }
  return f;
}

}  // namespace tilecast
