// Fused layers of experts.

#include <algorithm>
#include <cmath>

#include "predict/features.h"

namespace tilecast {
namespace {

Features experts(const Kernel& kernel, const Device& device, const Conditions& conditions,
                 const Bound& bound, Tile) {
  const auto& e = std::get<Experts>(kernel.shape);
  const double busy = std::max(1.0, e.busy);
  const double tokens = e.assignments / busy;
  const Waves waves = count_waves(kernel, device, {});
  const double tiles_per_sm = waves.tiles / static_cast<double>(device.gpu().sm_count);
  const double shortest = shortest_kernel_s(NetKind::kExperts, device);
  const double memory = static_cast<double>(kernel.bytes()) / device.memory_bytes_per_s;
  const float bytes_per_l2 =
      log2_of(static_cast<double>(kernel.bytes()) / static_cast<double>(device.gpu().l2_bytes));
  const Scheme scheme = kernel.scheme;
  const double weight_bits = static_cast<double>(
      dtype_bits(scheme == Scheme::kNone ? kernel.dtype : scheme_info(scheme).weight));
  const double own = static_cast<double>(e.num_experts) / static_cast<double>(e.ranks);
  return {std::clamp(log2_of(tokens), -1.0f, 10.0f), std::clamp(log2_of(tiles_per_sm), -6.0f, 6.0f),
          static_cast<float>(waves.occupancy),
          std::clamp(log2_of(static_cast<double>(e.hidden_dim)), 10.0f, 13.0f),
          std::clamp(log2_of(static_cast<double>(e.ffn_dim)), 6.0f, 12.0f),
          std::clamp(log2_of(bound.law_s / shortest), -12.0f, 10.0f),
          std::clamp(log2_of(bound.compute_s / memory), -7.0f, 5.0f),
          flag(conditions.software == Software::kTensorRtLlm), log2_of(weight_bits),
          flag(scheme == Scheme::kFp8Block),
          flag(scheme != Scheme::kNone && !scheme_info(scheme).multiplied),
          flag(e.skew_percent > 0), std::clamp(log2_of(own), 0.0f, 7.0f),
          // Not shared by all devices.
          flag(scheme == Scheme::kFp4WeightOnly), bytes_per_l2,
          static_cast<float>(std::min(1.0, tokens / kExpertTile)),
          log2_of(static_cast<double>(e.tokens)), log2_of(static_cast<double>(e.top_k)),
          log2_of(static_cast<double>(e.num_experts)), log2_of(static_cast<double>(e.ranks)),
          static_cast<float>(e.skew_percent) / 100.0f, log2_of(e.assignments),
          log2_of(static_cast<double>(e.hidden_dim)), log2_of(static_cast<double>(e.ffn_dim)),
          log2_of(busy), log2_of(static_cast<double>(e.tokens) * static_cast<double>(e.top_k)),
          log2_of(bound.law_s / shortest), alignment(e.ffn_dim, 9)};
}

}  // namespace

NetDef experts_net() {
  return {.name = "experts",
          .features = {"log2_tokens_per_expert", "log2_few_tiles_per_sm", "occupancy",
                       "log2_hidden_size", "log2_inner_size", "log2_bound", "log2_intensity",
                       "is_trtllm", "log2_weight_bits", "is_block_scaled", "is_weight_only",
                       "is_skewed", "log2_own_experts",
                       // Not shared by all devices.
                       "is_fp4", "log2_bytes_per_l2", "fill", "log2_tokens", "log2_chosen",
                       "log2_experts", "log2_ranks", "skew", "log2_assignments", "log2_hidden",
                       "log2_inner", "log2_busy", "log2_all_assignments", "log2_full_bound",
                       "align_inner"},
          .shared = 13,
          .lowest_logit = -12.0f,
          .counts_cycles = true,
          .by_layer = true,
          .pair_ops = {"experts"},
          .make = experts};
}

}  // namespace tilecast
