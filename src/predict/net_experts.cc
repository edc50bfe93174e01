// Fused layers of experts.

#include <algorithm>

#include "predict/features.h"

namespace tilecast {
namespace {

struct Inputs {
  const Kernel& kernel;
  const Experts& e;
  double busy;    ///< experts that get a token, at least one
  double tokens;  ///< of a busy expert
};

Inputs inputs_of(const Kernel& kernel) {
  const auto& e = std::get<Experts>(kernel.shape);
  const double busy = std::max(1.0, e.active_experts);
  return {.kernel = kernel, .e = e, .busy = busy, .tokens = e.assignments / busy};
}

using F = Feature<Inputs>;

constexpr auto kExperts = std::to_array<F>({
    {"log2_tokens_per_expert", [](const Inputs& x) { return log2_of(x.tokens); }},
    {"log2_tokens", [](const Inputs& x) { return log2_of(x.e.tokens); }},
    {"log2_hidden", [](const Inputs& x) { return log2_of(x.e.hidden_dim); }},
    {"log2_inner", [](const Inputs& x) { return log2_of(x.e.ffn_dim); }},
    {"log2_busy", [](const Inputs& x) { return log2_of(x.busy); }},
    {"log2_experts", [](const Inputs& x) { return log2_of(x.e.num_experts); }},
    {"log2_ranks", [](const Inputs& x) { return log2_of(x.e.ranks); }},
    {"log2_own_experts",
     [](const Inputs& x) {
       return log2_of(static_cast<double>(x.e.num_experts) / static_cast<double>(x.e.ranks));
     }},
    {"log2_chosen", [](const Inputs& x) { return log2_of(x.e.top_k); }},
    {"skew", [](const Inputs& x) { return static_cast<float>(x.e.skew_percent) / 100.0f; }},
    {"log2_assignments", [](const Inputs& x) { return log2_of(x.e.assignments); }},
    {"log2_all_assignments",
     [](const Inputs& x) {
       return log2_of(static_cast<double>(x.e.tokens) * static_cast<double>(x.e.top_k));
     }},
    {"log2_flops", [](const Inputs& x) { return log2_of(x.kernel.flops); }},
    {"log2_bytes", [](const Inputs& x) { return log2_of(x.kernel.bytes()); }},
    {"log2_weight_bits", [](const Inputs& x) { return log2_of(weight_bits(x.kernel)); }},
    {"is_block_scaled",
     [](const Inputs& x) { return flag(x.kernel.scheme == QuantScheme::kFp8Block); }},
    {"is_weight_only", [](const Inputs& x) { return flag(converts_weights(x.kernel)); }},
    {"is_fp4",
     [](const Inputs& x) { return flag(x.kernel.scheme == QuantScheme::kFp4WeightOnly); }},
    {"fill", [](const Inputs& x) { return static_cast<float>(std::min(1.0, x.tokens / 64)); }},
    {"align_inner", [](const Inputs& x) { return alignment(x.e.ffn_dim, 9); }},
});

using Table = FeatureTable<kExperts>;

}  // namespace

NetDef experts_net() {
  return {.name = "experts",
          .covers = [](const Kernel& kernel) { return kernel.is<Experts>(); },
          .law = experts_law,
          .cold = true,
          .features = Table::names(),
          .learning = kLearnedFromLayers,
          .make = [](const Kernel& kernel) { return Table::values(inputs_of(kernel)); }};
}

}  // namespace tilecast
