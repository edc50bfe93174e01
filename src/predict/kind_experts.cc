// Fused layers of experts.

#include <algorithm>

#include "predict/features.h"

namespace tilecast {
namespace {

struct ExpertsInputs {
  const Kernel& kernel;
  const Experts& e;
  double busy;    ///< experts that get a token, at least one
  double tokens;  ///< of a busy expert
};

ExpertsInputs experts_inputs(const Kernel& kernel) {
  const auto& e = std::get<Experts>(kernel.shape);
  const double busy = std::max(1.0, e.active_experts);
  return {.kernel = kernel, .e = e, .busy = busy, .tokens = e.assignments / busy};
}

/// The exponent, or the nearest one that was measured: even loads were learned as another case, not
/// as an exponent of 0.
float measured_skew(const Experts& e) {
  constexpr float kLeast = 1.01f, kMost = 1.2f;
  if (e.skew_percent == 0) return 0;
  return std::clamp(static_cast<float>(e.skew_percent) / 100.0f, kLeast, kMost);
}

using ExpertsFeature = Feature<ExpertsInputs>;

constexpr auto kExperts = std::to_array<ExpertsFeature>({
    {"log2_tokens_per_expert", [](const ExpertsInputs& x) { return log2_of(x.tokens); }},
    {"log2_tokens", [](const ExpertsInputs& x) { return log2_of(x.e.tokens); }},
    {"log2_hidden", [](const ExpertsInputs& x) { return log2_of(x.e.hidden_dim); }},
    {"log2_inner", [](const ExpertsInputs& x) { return log2_of(x.e.ffn_dim); }},
    {"log2_busy", [](const ExpertsInputs& x) { return log2_of(x.busy); }},
    {"log2_experts", [](const ExpertsInputs& x) { return log2_of(x.e.num_experts); }},
    {"log2_ranks", [](const ExpertsInputs& x) { return log2_of(x.e.ranks); }},
    {"log2_own_experts",
     [](const ExpertsInputs& x) {
       return log2_of(static_cast<double>(x.e.num_experts) / static_cast<double>(x.e.ranks));
     }},
    {"log2_chosen", [](const ExpertsInputs& x) { return log2_of(x.e.top_k); }},
    {"skew", [](const ExpertsInputs& x) { return measured_skew(x.e); }},
    {"log2_assignments", [](const ExpertsInputs& x) { return log2_of(x.e.assignments); }},
    {"log2_all_assignments",
     [](const ExpertsInputs& x) {
       return log2_of(static_cast<double>(x.e.tokens) * static_cast<double>(x.e.top_k));
     }},
    {"log2_flops", [](const ExpertsInputs& x) { return log2_of(x.kernel.flops); }},
    {"log2_bytes", [](const ExpertsInputs& x) { return log2_of(x.kernel.bytes()); }},
    {"log2_weight_bits", [](const ExpertsInputs& x) { return log2_of(weight_bits(x.kernel)); }},
    {"is_block_scaled",
     [](const ExpertsInputs& x) { return flag(x.kernel.scheme == QuantScheme::kFp8Block); }},
    {"is_weight_only", [](const ExpertsInputs& x) { return flag(converts_weights(x.kernel)); }},
    {"is_fp4",
     [](const ExpertsInputs& x) { return flag(x.kernel.scheme == QuantScheme::kFp4WeightOnly); }},
    {"fill",
     [](const ExpertsInputs& x) { return static_cast<float>(std::min(1.0, x.tokens / 64)); }},
    {"align_inner", [](const ExpertsInputs& x) { return alignment(x.e.ffn_dim, 9); }},
});

using ExpertsTable = FeatureTable<kExperts>;

}  // namespace

KernelKindDef experts_kind() {
  return {.name = "experts",
          .covers = [](const Kernel& kernel) { return kernel.is<Experts>(); },
          .law = experts_law,
          .cold = true,
          .features = ExpertsTable::names(),
          .learning = kLearnedFromLayers,
          .make = [](const Kernel& kernel,
                     const Conditions&) { return ExpertsTable::values(experts_inputs(kernel)); }};
}

}  // namespace tilecast
