// Matrix products.

#include <algorithm>

#include "predict/features.h"

namespace tilecast {
namespace {

/// What the features of both kinds are computed from.
struct Inputs {
  const Kernel& kernel;
  const Device& device;
  const Conditions& conditions;
  const Bound& bound;
  Tile tile;  ///< of single precision: the one that the library is taken to pick
  Gemm gemm;
  Waves waves;  ///< in that tile
  Waves small;  ///< in tiles of 64
  float tiles_per_sm, intensity, bytes_per_l2;
};

Inputs inputs_of(const Kernel& kernel, const Device& device, const Conditions& conditions,
                 const Bound& bound, Tile tile) {
  Inputs x{.kernel = kernel,
           .device = device,
           .conditions = conditions,
           .bound = bound,
           .tile = tile,
           .gemm = gemm_of(kernel)};
  x.waves = count_waves(kernel, device, tile);
  x.small = count_waves(kernel, device, {64, 64});
  const auto bytes = static_cast<double>(kernel.bytes());
  x.tiles_per_sm = log2_of(x.waves.tiles / static_cast<double>(device.gpu().sm_count));
  x.intensity = log2_of(bound.compute_s / (std::max(1.0, bytes) / device.memory_bytes_per_s));
  x.bytes_per_l2 = log2_bytes_per_l2(kernel, device);
  return x;
}

bool is_single_precision(const Kernel& kernel) {
  return kernel.compute_dtype() == DType::kFp32 && kernel.scheme == QuantScheme::kNone;
}

/// Share of the tiles' outputs that are outputs of the product.
float tile_fill(const Inputs& x) {
  const double outputs = static_cast<double>(x.gemm.batch) * static_cast<double>(x.gemm.m) *
                         static_cast<double>(x.gemm.n);
  return static_cast<float>(outputs / (x.waves.tiles * x.tile.m * x.tile.n));
}

using F = Feature<Inputs>;

// Features of the base model end where more of them changes nothing any more, so that a device with
// more of it is no unknown land.
constexpr auto kSingleBase = std::to_array<F>({
    {"log2_tile_reuse",
     [](const Inputs& x) {
       return log2_of(static_cast<double>(x.tile.m) * x.tile.n / (x.tile.m + x.tile.n));
     }},
    {"log2_few_tiles_per_sm",
     [](const Inputs& x) { return std::clamp(x.tiles_per_sm, -5.0f, 4.0f); }},
    {"wave_occupancy", [](const Inputs& x) { return static_cast<float>(x.waves.occupancy); }},
    {"occupancy_64", [](const Inputs& x) { return static_cast<float>(x.small.occupancy); }},
    {"tile_fill", tile_fill},
    {"log2_low_intensity", [](const Inputs& x) { return std::clamp(x.intensity, -3.0f, 4.0f); }},
    {"log2_short_k", [](const Inputs& x) { return log2_of(std::min<int64_t>(x.gemm.k, 1024)); }},
    {"align_m", [](const Inputs& x) { return alignment(x.gemm.m); }},
    {"align_n", [](const Inputs& x) { return alignment(x.gemm.n); }},
    {"align_k", [](const Inputs& x) { return alignment(x.gemm.k); }},
    {"on_matrix_unit",
     [](const Inputs& x) { return flag(x.device.gpu().matrix_peak(x.kernel.dtype) > 0); }},
});

// How sizes beyond the tile and the library's entry point matter differs in ways that no data sheet
// tells (P100's linear products fall to a third of its rate with size, its batched ones do not).
constexpr auto kSizes = std::to_array<F>({
    {"log2_tiles_per_sm", [](const Inputs& x) { return x.tiles_per_sm; }},
    {"log2_intensity", [](const Inputs& x) { return x.intensity; }},
    {"log2_m", [](const Inputs& x) { return log2_of(x.gemm.m); }},
    {"log2_n", [](const Inputs& x) { return log2_of(x.gemm.n); }},
    {"log2_k", [](const Inputs& x) { return log2_of(x.gemm.k); }},
    {"log2_bytes_per_l2", [](const Inputs& x) { return x.bytes_per_l2; }},
    {"stride_n", [](const Inputs& x) { return alignment(x.gemm.n, kStrideBits); }},
    {"stride_k", [](const Inputs& x) { return alignment(x.gemm.k, kStrideBits); }},
});

constexpr auto kTileSizes = std::to_array<F>({
    {"log2_tile_m", [](const Inputs& x) { return log2_of(static_cast<double>(x.tile.m)); }},
    {"log2_tile_n", [](const Inputs& x) { return log2_of(static_cast<double>(x.tile.n)); }},
});

constexpr auto kEntryPoint = std::to_array<F>({
    {"is_linear", [](const Inputs& x) { return flag(!x.gemm.batched); }},
});

// Which tile the library picks in low precision is not known: the fill of three usual ones stands
// for it.
constexpr Tile kUsualTile = {128, 128};

constexpr auto kLowPrecisionBase = std::to_array<F>({
    {"log2_few_tiles_per_sm",
     [](const Inputs& x) { return std::clamp(x.tiles_per_sm, -7.0f, 4.0f); }},
    {"occupancy_128", [](const Inputs& x) { return static_cast<float>(x.waves.occupancy); }},
    {"occupancy_64", [](const Inputs& x) { return static_cast<float>(x.small.occupancy); }},
    {"fill_m_64", [](const Inputs& x) { return fill_of(x.gemm.m, 64); }},
    {"fill_n_128", [](const Inputs& x) { return fill_of(x.gemm.n, 128); }},
    {"log2_low_intensity", [](const Inputs& x) { return std::clamp(x.intensity, -6.0f, 3.0f); }},
    {"log2_short_k", [](const Inputs& x) { return log2_of(std::min<int64_t>(x.gemm.k, 4096)); }},
    {"align_m", [](const Inputs& x) { return alignment(x.gemm.m); }},
    {"align_n", [](const Inputs& x) { return alignment(x.gemm.n); }},
    {"align_k", [](const Inputs& x) { return alignment(x.gemm.k); }},
    {"log2_low_m", [](const Inputs& x) { return log2_of(std::min<int64_t>(x.gemm.m, 256)); }},
    {"log2_element_bytes",
     [](const Inputs& x) {
       return log2_of(static_cast<double>(dtype_bits(x.kernel.compute_dtype())) / 8);
     }},
    {"log2_bound",
     [](const Inputs& x) {
       const double floor_s = latency_floor_s(NetKind::kTensorMatmul, x.device);
       return std::clamp(log2_of(x.bound.law_s / floor_s), -12.0f, 8.0f);
     }},
    {"on_matrix_unit",
     [](const Inputs& x) {
       return flag(x.device.gpu().matrix_peak(x.kernel.compute_dtype()) > 0);
     }},
    {"is_amd", [](const Inputs& x) { return flag(x.device.vendor == "amd"); }},
    // vLLM, SGLang and PyTorch call the same library (cuBLAS).
    {"is_trtllm",
     [](const Inputs& x) { return flag(x.conditions.software == Software::kTensorRtLlm); }},
    {"is_block_scaled",
     [](const Inputs& x) { return flag(x.kernel.scheme == QuantScheme::kFp8Block); }},
});

using Single = FeatureTable<kSingleBase, kTileSizes, kSizes, kEntryPoint>;
using LowPrecision = FeatureTable<kLowPrecisionBase, kSizes>;

}  // namespace

NetDef matmul_net() {
  return {
      .name = "matmul",
      .covers =
          [](const Kernel& kernel) { return kernel.is_product() && is_single_precision(kernel); },
      .features = Single::names(),
      .base_features = Single::kBaseCount,
      .lowest_logit = -4.6f,  // 1 %: about one tile on a device of a hundred SMs
      .profiled_tiles = true,
      .pair_dtypes = {DType::kFp32},
      .make =
          [](const Kernel& kernel, const Device& device, const Conditions& conditions,
             const Bound& bound, Tile tile) {
            return Single::values(inputs_of(kernel, device, conditions, bound, tile));
          }};
}

NetDef tensor_matmul_net() {
  return {
      .name = "tensor_matmul",
      .covers =
          [](const Kernel& kernel) { return kernel.is_product() && !is_single_precision(kernel); },
      .features = LowPrecision::names(),
      .base_features = LowPrecision::kBaseCount,
      // The smallest measured take microseconds for nanoseconds of traffic.
      .lowest_logit = -12.0f,
      .counts_cycles = true,
      .caches = MeasuredCaches::kCold,
      .learning = kLearnedFromLayers,
      .pair_dtypes = {DType::kBf16},
      .make =
          [](const Kernel& kernel, const Device& device, const Conditions& conditions,
             const Bound& bound, Tile) {
            return LowPrecision::values(inputs_of(kernel, device, conditions, bound, kUsualTile));
          }};
}

}  // namespace tilecast
