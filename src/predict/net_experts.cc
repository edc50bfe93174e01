// Fused layers of experts.

#include <algorithm>
#include <cmath>

#include "predict/features.h"

namespace tilecast {
namespace {

struct Inputs {
  const Experts& e;
  const Conditions& conditions;
  const Bound& bound;
  QuantScheme scheme;
  double busy;    ///< experts that get a token, at least one
  double tokens;  ///< of a busy expert
  Waves waves;
  double tiles_per_sm;
  double floor_s;  ///< latency_floor_s
  double memory;   ///< seconds of all traffic from DRAM
  float bytes_per_l2;
  int64_t weight_bits;
};

Inputs inputs_of(const Kernel& kernel, const Device& device, const Conditions& conditions,
                 const Bound& bound) {
  const auto& e = std::get<Experts>(kernel.shape);
  Inputs x{.e = e, .conditions = conditions, .bound = bound, .scheme = kernel.scheme};
  x.busy = std::max(1.0, e.active_experts);
  x.tokens = e.assignments / x.busy;
  x.waves = count_waves(kernel, device, {});
  x.tiles_per_sm = x.waves.tiles / static_cast<double>(device.gpu().sm_count);
  x.floor_s = latency_floor_s(NetKind::kExperts, device);
  x.memory = static_cast<double>(kernel.bytes()) / device.memory_bytes_per_s;
  x.bytes_per_l2 = log2_bytes_per_l2(kernel, device);
  x.weight_bits = dtype_bits(x.scheme == QuantScheme::kNone ? kernel.dtype
                                                            : scheme_info(x.scheme).weight_dtype);
  return x;
}

using F = Feature<Inputs>;

constexpr auto kBase = std::to_array<F>({
    {"log2_tokens_per_expert",
     [](const Inputs& x) { return std::clamp(log2_of(x.tokens), -1.0f, 10.0f); }},
    {"log2_few_tiles_per_sm",
     [](const Inputs& x) { return std::clamp(log2_of(x.tiles_per_sm), -6.0f, 6.0f); }},
    {"occupancy", [](const Inputs& x) { return static_cast<float>(x.waves.occupancy); }},
    {"log2_hidden_size",
     [](const Inputs& x) { return std::clamp(log2_of(x.e.hidden_dim), 10.0f, 13.0f); }},
    {"log2_inner_size",
     [](const Inputs& x) { return std::clamp(log2_of(x.e.ffn_dim), 6.0f, 12.0f); }},
    {"log2_bound",
     [](const Inputs& x) { return std::clamp(log2_of(x.bound.law_s / x.floor_s), -12.0f, 10.0f); }},
    {"log2_intensity",
     [](const Inputs& x) {
       return std::clamp(log2_of(x.bound.compute_s / x.memory), -7.0f, 5.0f);
     }},
    {"is_trtllm",
     [](const Inputs& x) { return flag(x.conditions.software == Software::kTensorRtLlm); }},
    {"log2_weight_bits", [](const Inputs& x) { return log2_of(x.weight_bits); }},
    {"is_block_scaled", [](const Inputs& x) { return flag(x.scheme == QuantScheme::kFp8Block); }},
    {"is_weight_only",
     [](const Inputs& x) {
       return flag(x.scheme != QuantScheme::kNone && !scheme_info(x.scheme).compute_dtype);
     }},
    {"is_skewed", [](const Inputs& x) { return flag(x.e.skew_percent > 0); }},
    {"log2_own_experts",
     [](const Inputs& x) {
       const double own = static_cast<double>(x.e.num_experts) / static_cast<double>(x.e.ranks);
       return std::clamp(log2_of(own), 0.0f, 7.0f);
     }},
});

constexpr auto kOwn = std::to_array<F>({
    {"is_fp4", [](const Inputs& x) { return flag(x.scheme == QuantScheme::kFp4WeightOnly); }},
    {"log2_bytes_per_l2", [](const Inputs& x) { return x.bytes_per_l2; }},
    {"fill",
     [](const Inputs& x) { return static_cast<float>(std::min(1.0, x.tokens / kExpertTile)); }},
    {"log2_tokens", [](const Inputs& x) { return log2_of(x.e.tokens); }},
    {"log2_chosen", [](const Inputs& x) { return log2_of(x.e.top_k); }},
    {"log2_experts", [](const Inputs& x) { return log2_of(x.e.num_experts); }},
    {"log2_ranks", [](const Inputs& x) { return log2_of(x.e.ranks); }},
    {"skew", [](const Inputs& x) { return static_cast<float>(x.e.skew_percent) / 100.0f; }},
    {"log2_assignments", [](const Inputs& x) { return log2_of(x.e.assignments); }},
    {"log2_hidden", [](const Inputs& x) { return log2_of(x.e.hidden_dim); }},
    {"log2_inner", [](const Inputs& x) { return log2_of(x.e.ffn_dim); }},
    {"log2_busy", [](const Inputs& x) { return log2_of(x.busy); }},
    {"log2_all_assignments",
     [](const Inputs& x) {
       return log2_of(static_cast<double>(x.e.tokens) * static_cast<double>(x.e.top_k));
     }},
    {"log2_full_bound", [](const Inputs& x) { return log2_of(x.bound.law_s / x.floor_s); }},
    {"align_inner", [](const Inputs& x) { return alignment(x.e.ffn_dim, 9); }},
});

using Table = FeatureTable<kBase, kOwn>;

}  // namespace

NetDef experts_net() {
  return {.name = "experts",
          .covers = [](const Kernel& kernel) { return kernel.is<Experts>(); },
          .features = Table::names(),
          .base_features = Table::kBaseCount,
          .lowest_logit = -12.0f,
          .counts_cycles = true,
          .caches = MeasuredCaches::kReplayed,
          .learning = kLearnedFromLayers,
          .pair_dtypes = {DType::kBf16},
          .make = [](const Kernel& kernel, const Device& device, const Conditions& conditions,
                     const Bound& bound,
                     Tile) { return Table::values(inputs_of(kernel, device, conditions, bound)); }};
}

}  // namespace tilecast
