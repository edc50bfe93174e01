// Fused attention.

#include <algorithm>
#include <cmath>

#include "predict/features.h"

namespace tilecast {
namespace {

/// Keys that one block loads at a time, as kQueryTile.
constexpr double kKeyTile = 64;

/// What the features of both kinds are computed from.
struct Inputs {
  const Kernel& kernel;
  const Attention& a;
  const Conditions& conditions;
  const Bound& bound;
  double floor_s;  ///< latency_floor_s
  double memory;   ///< seconds of all traffic from DRAM
  double blocks, occupancy, blocks_per_sm;
  double reach;  ///< keys that the last query sees
  /// Seconds of the blocks of one SM, one after the other, at its share of the peak.
  double serial;
  double group;  ///< query heads that share keys and values
  float bytes_per_l2;
};

Inputs inputs_of(NetKind kind, const Kernel& kernel, const Device& device,
                 const Conditions& conditions, const Bound& bound) {
  const auto& a = std::get<Attention>(kernel.shape);
  const bool decode = a.is_decode();
  Inputs x{.kernel = kernel, .a = a, .conditions = conditions, .bound = bound};
  x.floor_s = latency_floor_s(kind, device);
  x.memory = static_cast<double>(kernel.bytes()) / device.memory_bytes_per_s;
  const Waves waves = count_waves(kernel, device, {});
  x.blocks = waves.tiles;
  x.occupancy = waves.occupancy;
  const auto sm = static_cast<double>(device.gpu().sm_count);
  x.blocks_per_sm = x.blocks / sm;
  const int64_t seen = decode ? a.window : a.window + kQueryTile;
  x.reach = static_cast<double>(a.window == 0 ? a.keys : std::min(a.keys, seen));
  const double rows = static_cast<double>(std::min(a.queries, kQueryTile)) *
                      (decode ? static_cast<double>(a.heads / a.kv_heads) : 1.0);
  const double block_flops = 4 * rows * x.reach * static_cast<double>(a.head_dim);
  const double per_sm = static_cast<double>(kernel.flops) / std::max(1e-12, bound.compute_s) / sm;
  x.serial =
      std::max(block_flops / per_sm * std::max(1.0, std::floor(x.blocks_per_sm)), bound.compute_s);
  x.group = static_cast<double>(a.heads) / static_cast<double>(a.kv_heads);
  x.bytes_per_l2 = log2_bytes_per_l2(kernel, device);
  return x;
}

using F = Feature<Inputs>;

float is_trtllm(const Inputs& x) { return flag(x.conditions.software == Software::kTensorRtLlm); }

constexpr auto kPrefillBase = std::to_array<F>({
    {"log2_serial_bound",
     [](const Inputs& x) {
       return std::clamp(log2_of(std::max(x.serial, x.memory) / x.floor_s), -8.0f, 10.0f);
     }},
    {"log2_bound",
     [](const Inputs& x) { return std::clamp(log2_of(x.bound.law_s / x.floor_s), -6.0f, 8.0f); }},
    {"log2_key_steps",
     [](const Inputs& x) { return std::clamp(log2_of(x.reach / kKeyTile), 0.0f, 11.0f); }},
    {"log2_few_blocks_per_sm",
     [](const Inputs& x) { return std::clamp(log2_of(x.blocks_per_sm), -5.0f, 3.0f); }},
    {"log2_head_size", [](const Inputs& x) { return log2_of(x.a.head_dim); }},
    {"log2_small_group", [](const Inputs& x) { return std::min(log2_of(x.group), 4.0f); }},
    {"is_causal", [](const Inputs& x) { return flag(x.a.causal); }},
    {"is_trtllm", is_trtllm},
    {"is_8_bit", [](const Inputs& x) { return flag(dtype_bits(x.kernel.dtype) <= 8); }},
    {"is_8_bit_cache", [](const Inputs& x) { return flag(dtype_bits(x.a.kv_dtype) <= 8); }},
});

constexpr auto kPrefillOwn = std::to_array<F>({
    {"occupancy", [](const Inputs& x) { return static_cast<float>(x.occupancy); }},
    {"log2_intensity", [](const Inputs& x) { return log2_of(x.bound.compute_s / x.memory); }},
    {"fill_m", [](const Inputs& x) { return fill_of(x.a.queries, kQueryTile); }},
    {"log2_bytes_per_l2", [](const Inputs& x) { return x.bytes_per_l2; }},
    {"log2_batch", [](const Inputs& x) { return log2_of(x.a.batch); }},
    {"log2_queries", [](const Inputs& x) { return log2_of(x.a.queries); }},
});

constexpr auto kSizes = std::to_array<F>({
    {"log2_keys", [](const Inputs& x) { return log2_of(x.a.keys); }},
    {"log2_heads", [](const Inputs& x) { return log2_of(x.a.heads); }},
    {"log2_kv_heads", [](const Inputs& x) { return log2_of(x.a.kv_heads); }},
    {"log2_reach", [](const Inputs& x) { return log2_of(x.reach); }},
    {"log2_blocks_per_sm", [](const Inputs& x) { return log2_of(x.blocks_per_sm); }},
    {"log2_full_bound", [](const Inputs& x) { return log2_of(x.bound.law_s / x.floor_s); }},
});

constexpr auto kKeys = std::to_array<F>({
    {"align_keys", [](const Inputs& x) { return alignment(x.a.keys, 7); }},
    {"window_binds", [](const Inputs& x) { return flag(x.a.window > 0 && x.a.window < x.a.keys); }},
    // Whether it binds or not: on L40S vLLM has another kernel for it, up to 50 times slower.
    {"has_window", [](const Inputs& x) { return flag(x.a.window > 0); }},
});

constexpr auto kDecodeBase = std::to_array<F>({
    {"log2_bound",
     [](const Inputs& x) { return std::clamp(log2_of(x.bound.law_s / x.floor_s), -8.0f, 8.0f); }},
    {"log2_few_blocks_per_sm",
     [](const Inputs& x) { return std::clamp(log2_of(x.blocks_per_sm), -5.0f, 3.0f); }},
    {"log2_kib_per_block",
     [](const Inputs& x) {
       return std::clamp(log2_of(static_cast<double>(x.kernel.bytes()) / x.blocks / 1024), 0.0f,
                         14.0f);
     }},
    {"log2_head_size", [](const Inputs& x) { return log2_of(x.a.head_dim); }},
    {"log2_small_group", [](const Inputs& x) { return std::min(log2_of(x.group), 4.0f); }},
    {"is_trtllm", is_trtllm},
    // Keys and values are stored in fewer bits than queries are multiplied in.
    {"is_narrow_cache",
     [](const Inputs& x) { return flag(dtype_bits(x.a.kv_dtype) < dtype_bits(x.kernel.dtype)); }},
});

constexpr auto kDecodeOwn = std::to_array<F>({
    {"occupancy", [](const Inputs& x) { return static_cast<float>(x.occupancy); }},
    {"log2_intensity",
     [](const Inputs& x) {
       return log2_of(x.bound.compute_s / std::max(1e-12, x.bound.memory_s));
     }},
    {"log2_bytes_per_l2", [](const Inputs& x) { return x.bytes_per_l2; }},
    {"log2_batch", [](const Inputs& x) { return log2_of(x.a.batch); }},
});

constexpr auto kGroup = std::to_array<F>({
    {"log2_group", [](const Inputs& x) { return log2_of(x.group); }},
});

using Prefill = FeatureTable<kPrefillBase, kPrefillOwn, kSizes, kKeys>;
using Decode = FeatureTable<kDecodeBase, kDecodeOwn, kSizes, kGroup, kKeys>;

/// What prefill and decode have in common.
template <NetKind kKind, class Table>
NetDef net(std::string_view name) {
  return {.name = name,
          .covers =
              [](const Kernel& kernel) {
                constexpr bool kDecode = kKind == NetKind::kDecodeAttention;
                const Attention* attention = kernel.as<Attention>();
                return attention != nullptr && attention->is_decode() == kDecode;
              },
          .features = Table::names(),
          .base_features = Table::kBaseCount,
          .lowest_logit = -12.0f,
          .counts_cycles = true,
          .caches = MeasuredCaches::kReplayed,
          .learning = kLearnedFromLayers,
          .pair_dtypes = {DType::kBf16},
          .make =
              [](const Kernel& kernel, const Device& device, const Conditions& conditions,
                 const Bound& bound, Tile) {
                return Table::values(inputs_of(kKind, kernel, device, conditions, bound));
              }};
}

}  // namespace

NetDef attention_net() { return net<NetKind::kAttention, Prefill>("attention"); }

NetDef decode_attention_net() { return net<NetKind::kDecodeAttention, Decode>("decode_attention"); }

}  // namespace tilecast
