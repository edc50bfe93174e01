// Fused attention.

#include <algorithm>
#include <cmath>

#include "predict/features.h"

namespace tilecast {
namespace {

/// Keys that one block loads at a time, as kQueryTile.
constexpr double kKeyTile = 64;

struct Work {
  double blocks, occupancy, blocks_per_sm;
  double reach;  ///< keys that the last query sees
  double
      serial;  ///< seconds of the blocks of one SM, one after the other, at its share of the peak
  float bytes_per_l2;
};

Work work_of(const Kernel& kernel, const Device& device, const Bound& bound) {
  const auto& a = std::get<Attention>(kernel.shape);
  const bool decode = a.is_decode();
  Work w{};
  const Waves waves = count_waves(kernel, device, {});
  w.blocks = waves.tiles;
  w.occupancy = waves.occupancy;
  const auto sm = static_cast<double>(device.gpu().sm_count);
  w.blocks_per_sm = w.blocks / sm;
  const int64_t seen = decode ? a.window : a.window + kQueryTile;
  w.reach = static_cast<double>(a.window == 0 ? a.keys : std::min(a.keys, seen));
  const double rows = static_cast<double>(std::min(a.queries, kQueryTile)) *
                      (decode ? static_cast<double>(a.heads / a.kv_heads) : 1.0);
  const double block_flops = 4 * rows * w.reach * static_cast<double>(a.head_dim);
  const double per_sm = static_cast<double>(kernel.flops) / std::max(1e-12, bound.compute_s) / sm;
  w.serial =
      std::max(block_flops / per_sm * std::max(1.0, std::floor(w.blocks_per_sm)), bound.compute_s);
  w.bytes_per_l2 =
      log2_of(static_cast<double>(kernel.bytes()) / static_cast<double>(device.gpu().l2_bytes));
  return w;
}

/// Whether keys and values are stored in fewer bits than queries are multiplied in.
bool narrow_cache(const Kernel& kernel) {
  return dtype_bits(std::get<Attention>(kernel.shape).kv_dtype) < dtype_bits(kernel.dtype);
}

Features prefill(const Kernel& kernel, const Device& device, const Conditions& conditions,
                 const Bound& bound, Tile) {
  const auto& a = std::get<Attention>(kernel.shape);
  const Work w = work_of(kernel, device, bound);
  const double shortest = shortest_kernel_s(NetKind::kAttention, device);
  const double memory = static_cast<double>(kernel.bytes()) / device.memory_bytes_per_s;
  const double group = static_cast<double>(a.heads) / static_cast<double>(a.kv_heads);
  return {std::clamp(log2_of(std::max(w.serial, memory) / shortest), -8.0f, 10.0f),
          std::clamp(log2_of(bound.law_s / shortest), -6.0f, 8.0f),
          std::clamp(log2_of(w.reach / kKeyTile), 0.0f, 11.0f),
          std::clamp(log2_of(w.blocks_per_sm), -5.0f, 3.0f),
          log2_of(static_cast<double>(a.head_dim)), std::min(log2_of(group), 4.0f), flag(a.causal),
          flag(conditions.software == Software::kTensorRtLlm), flag(dtype_bits(kernel.dtype) <= 8),
          flag(dtype_bits(a.kv_dtype) <= 8),
          // Not shared by all devices.
          static_cast<float>(w.occupancy), log2_of(bound.compute_s / memory),
          fill_of(a.queries, kQueryTile), w.bytes_per_l2, log2_of(static_cast<double>(a.batch)),
          log2_of(static_cast<double>(a.queries)), log2_of(static_cast<double>(a.keys)),
          log2_of(static_cast<double>(a.heads)), log2_of(static_cast<double>(a.kv_heads)),
          log2_of(w.reach), log2_of(w.blocks_per_sm), log2_of(bound.law_s / shortest),
          alignment(a.keys, 7), flag(a.window > 0 && a.window < a.keys),
          // Whether it binds or not: on L40S vLLM has another kernel for it, up to 50 times slower.
          flag(a.window > 0)};
}

Features decode(const Kernel& kernel, const Device& device, const Conditions& conditions,
                const Bound& bound, Tile) {
  const auto& a = std::get<Attention>(kernel.shape);
  const Work w = work_of(kernel, device, bound);
  const double shortest = shortest_kernel_s(NetKind::kDecodeAttention, device);
  const double group = static_cast<double>(a.heads) / static_cast<double>(a.kv_heads);
  return {std::clamp(log2_of(bound.law_s / shortest), -8.0f, 8.0f),
          std::clamp(log2_of(w.blocks_per_sm), -5.0f, 3.0f),
          std::clamp(log2_of(static_cast<double>(kernel.bytes()) / w.blocks / 1024), 0.0f, 14.0f),
          log2_of(static_cast<double>(a.head_dim)), std::min(log2_of(group), 4.0f),
          flag(conditions.software == Software::kTensorRtLlm), flag(narrow_cache(kernel)),
          // Not shared by all devices.
          static_cast<float>(w.occupancy),
          log2_of(bound.compute_s / std::max(1e-12, bound.memory_s)), w.bytes_per_l2,
          log2_of(static_cast<double>(a.batch)), log2_of(static_cast<double>(a.keys)),
          log2_of(static_cast<double>(a.heads)), log2_of(static_cast<double>(a.kv_heads)),
          log2_of(w.reach), log2_of(w.blocks_per_sm), log2_of(bound.law_s / shortest),
          log2_of(group), alignment(a.keys, 7), flag(a.window > 0 && a.window < a.keys),
          // Whether it binds or not: on L40S vLLM has another kernel for it, up to 50 times slower.
          flag(a.window > 0)};
}

}  // namespace

NetDef attention_net() {
  return {.name = "attention",
          .features = {"log2_serial_bound", "log2_bound", "log2_key_steps",
                       "log2_few_blocks_per_sm", "log2_head_size", "log2_small_group", "is_causal",
                       "is_trtllm", "is_8_bit", "is_8_bit_cache",
                       // Not shared by all devices.
                       "occupancy", "log2_intensity", "fill_m", "log2_bytes_per_l2", "log2_batch",
                       "log2_queries", "log2_keys", "log2_heads", "log2_kv_heads", "log2_reach",
                       "log2_blocks_per_sm", "log2_full_bound", "align_keys", "window_binds",
                       "has_window"},
          .shared = 10,
          .lowest_logit = -12.0f,
          .counts_cycles = true,
          .by_layer = true,
          .pair_ops = {"attention"},
          .make = prefill};
}

NetDef decode_attention_net() {
  return {
      .name = "decode_attention",
      .features = {"log2_bound", "log2_few_blocks_per_sm", "log2_kib_per_block", "log2_head_size",
                   "log2_small_group", "is_trtllm", "is_narrow_cache",
                   // Not shared by all devices.
                   "occupancy", "log2_intensity", "log2_bytes_per_l2", "log2_batch", "log2_keys",
                   "log2_heads", "log2_kv_heads", "log2_reach", "log2_blocks_per_sm",
                   "log2_full_bound", "log2_group", "align_keys", "window_binds", "has_window"},
      .shared = 7,
      .lowest_logit = -12.0f,
      .counts_cycles = true,
      .by_layer = true,
      .pair_ops = {"cached_attention"},
      .make = decode};
}

}  // namespace tilecast
