// Matrix products.

#include <algorithm>

#include "predict/features.h"

namespace tilecast {
namespace {

Features single_precision(const Kernel& kernel, const Device& device, const Conditions&,
                          const Bound& bound, Tile tile) {
  const Gemm gemm = gemm_of(kernel);
  const Waves waves = count_waves(kernel, device, tile);
  const Waves small = count_waves(kernel, device, {64, 64});
  const double outputs =
      static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) * static_cast<double>(gemm.n);
  const auto bytes = static_cast<double>(kernel.bytes());
  const float tiles_per_sm = log2_of(waves.tiles / static_cast<double>(device.gpu().sm_count));
  const float intensity =
      log2_of(bound.compute_s / (std::max(1.0, bytes) / device.memory_bytes_per_s));
  // Features of the shared law end where more of them changes nothing any more, so that a device
  // with more of it is no unknown land.
  return {log2_of(static_cast<double>(tile.m) * tile.n / (tile.m + tile.n)),
          std::clamp(tiles_per_sm, -5.0f, 4.0f),
          static_cast<float>(waves.occupancy),
          static_cast<float>(small.occupancy),
          static_cast<float>(outputs / (waves.tiles * tile.m * tile.n)),
          std::clamp(intensity, -3.0f, 4.0f),
          log2_of(static_cast<double>(std::min<int64_t>(gemm.k, 1024))),
          alignment(gemm.m),
          alignment(gemm.n),
          alignment(gemm.k),
          device.gpu().matrix_peak(kernel.dtype) > 0 ? 1.0f : 0.0f,
          log2_of(tile.m),
          log2_of(tile.n),
          tiles_per_sm,
          intensity,
          log2_of(static_cast<double>(gemm.m)),
          log2_of(static_cast<double>(gemm.n)),
          log2_of(static_cast<double>(gemm.k)),
          log2_of(bytes / static_cast<double>(device.gpu().l2_bytes)),
          alignment(gemm.n, kStrideBits),
          alignment(gemm.k, kStrideBits),
          flag(!gemm.batched)};
}

Features narrow_types(const Kernel& kernel, const Device& device, const Conditions& conditions,
                      const Bound& bound, Tile) {
  const Gemm gemm = gemm_of(kernel);
  const Waves large = count_waves(kernel, device, {128, 128});
  const Waves small = count_waves(kernel, device, {64, 64});
  const auto bytes = static_cast<double>(kernel.bytes());
  const float tiles_per_sm = log2_of(large.tiles / static_cast<double>(device.gpu().sm_count));
  const float intensity =
      log2_of(bound.compute_s / (std::max(1.0, bytes) / device.memory_bytes_per_s));
  constexpr double kBitsPerByte = 8;
  const DType multiplied = kernel.multiplied();
  return {std::clamp(tiles_per_sm, -7.0f, 4.0f), static_cast<float>(large.occupancy),
          static_cast<float>(small.occupancy), fill_of(gemm.m, 64), fill_of(gemm.n, 128),
          std::clamp(intensity, -6.0f, 3.0f),
          log2_of(static_cast<double>(std::min<int64_t>(gemm.k, 4096))), alignment(gemm.m),
          alignment(gemm.n), alignment(gemm.k),
          log2_of(static_cast<double>(std::min<int64_t>(gemm.m, 256))),
          log2_of(static_cast<double>(dtype_bits(multiplied)) / kBitsPerByte),
          std::clamp(log2_of(bound.law_s / shortest_kernel_s(NetKind::kTensorMatmul, device)),
                     -12.0f, 8.0f),
          device.gpu().matrix_peak(multiplied) > 0 ? 1.0f : 0.0f,
          device.vendor == "amd" ? 1.0f : 0.0f,
          // vLLM, SGLang and PyTorch call the same library (cuBLAS).
          conditions.software == Software::kTensorRtLlm ? 1.0f : 0.0f,
          kernel.scheme == Scheme::kFp8Block ? 1.0f : 0.0f, tiles_per_sm, intensity,
          log2_of(static_cast<double>(gemm.m)), log2_of(static_cast<double>(gemm.n)),
          log2_of(static_cast<double>(gemm.k)),
          log2_of(bytes / static_cast<double>(device.gpu().l2_bytes)),
          alignment(gemm.n, kStrideBits), alignment(gemm.k, kStrideBits)};
}

}  // namespace

NetDef matmul_net() {
  return {
      .name = "matmul",
      .features = {"log2_tile_reuse", "log2_few_tiles_per_sm", "wave_occupancy", "occupancy_64",
                   "tile_fill", "log2_low_intensity", "log2_short_k", "align_m", "align_n",
                   "align_k", "on_matrix_unit",
                   // What follows is not shared by all devices: how sizes beyond the tile and the
                   // library's entry point matter differs in ways that no data sheet tells (P100's
                   // linear products fall to a third of its rate with size, its batched ones do
                   // not).
                   "log2_tile_m", "log2_tile_n", "log2_tiles_per_sm", "log2_intensity", "log2_m",
                   "log2_n", "log2_k", "log2_bytes_per_l2", "stride_n", "stride_k", "is_linear"},
      .shared = 11,
      .lowest_logit = -4.6f,  // 1 %: about one tile on a device of a hundred SMs
      .pair_ops = {"linear", "matmul"},
      .make = single_precision};
}

NetDef tensor_matmul_net() {
  // Which tile the library picks for narrow types is not known: the fill of three usual ones stands
  // for it.
  return {
      .name = "tensor_matmul",
      .features = {"log2_few_tiles_per_sm", "occupancy_128", "occupancy_64", "fill_m_64",
                   "fill_n_128", "log2_low_intensity", "log2_short_k", "align_m", "align_n",
                   "align_k", "log2_low_m", "log2_element_bytes", "log2_bound", "on_matrix_unit",
                   "is_amd", "is_trtllm", "is_block_scaled",
                   // Not shared by all devices.
                   "log2_tiles_per_sm", "log2_intensity", "log2_m", "log2_n", "log2_k",
                   "log2_bytes_per_l2", "stride_n", "stride_k"},
      .shared = 17,
      .lowest_logit = -12.0f,  // the smallest measured take microseconds for nanoseconds of traffic
      .counts_cycles = true,
      .by_layer = true,
      .pair_ops = {"linear", "matmul"},
      .make = narrow_types};
}

}  // namespace tilecast
