// Fused attention.

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"
#include "predict/bound.h"
#include "predict/features.h"

namespace tilecast {
namespace {

struct AttentionInputs {
  const Kernel& kernel;
  const Attention& a;
  double group;  ///< query heads that share keys and values
  double reach;  ///< keys that the last query sees
};

AttentionInputs attention_inputs(const Kernel& kernel) {
  const auto& a = std::get<Attention>(kernel.shape);
  const int64_t seen = a.is_decode() ? a.window : a.window + kQueryTile;
  return {.kernel = kernel,
          .a = a,
          .group = static_cast<double>(a.heads) / static_cast<double>(a.kv_heads),
          .reach = static_cast<double>(a.window == 0 ? a.keys : std::min(a.keys, seen))};
}

using AttentionFeature = Feature<AttentionInputs>;

constexpr auto kAttention = std::to_array<AttentionFeature>({
    {"log2_batch", [](const AttentionInputs& x) { return log2_of(x.a.batch); }},
    {"log2_keys", [](const AttentionInputs& x) { return log2_of(x.a.keys); }},
    {"log2_reach", [](const AttentionInputs& x) { return log2_of(x.reach); }},
    {"log2_heads", [](const AttentionInputs& x) { return log2_of(x.a.heads); }},
    {"log2_kv_heads", [](const AttentionInputs& x) { return log2_of(x.a.kv_heads); }},
    {"log2_group", [](const AttentionInputs& x) { return log2_of(x.group); }},
    {"log2_head_size", [](const AttentionInputs& x) { return log2_of(x.a.head_dim); }},
    {"log2_sequences",
     [](const AttentionInputs& x) {
       return log2_of(static_cast<double>(x.a.batch) * static_cast<double>(x.a.kv_heads));
     }},
    {"log2_bytes", [](const AttentionInputs& x) { return log2_of(x.kernel.bytes()); }},
    {"log2_flops", [](const AttentionInputs& x) { return log2_of(x.kernel.flops); }},
    {"align_keys", [](const AttentionInputs& x) { return alignment(x.a.keys, 7); }},
    {"window_binds",
     [](const AttentionInputs& x) { return flag(x.a.window > 0 && x.a.window < x.a.keys); }},
    // Whether it binds or not: on L40S vLLM has another kernel for it, up to 50 times slower.
    {"has_window", [](const AttentionInputs& x) { return flag(x.a.window > 0); }},
    {"log2_v_head_size", [](const AttentionInputs& x) { return log2_of(x.a.v_head_dim); }},
    {"is_latent", [](const AttentionInputs& x) { return flag(x.a.latent); }},
    {"is_8_bit_cache",
     [](const AttentionInputs& x) { return flag(has_8_bits_or_less(x.a.kv_dtype)); }},
    {"is_8_bit", [](const AttentionInputs& x) { return flag(has_8_bits_or_less(x.kernel.dtype)); }},
});

constexpr auto kPrefill = std::to_array<AttentionFeature>({
    {"is_causal", [](const AttentionInputs& x) { return flag(x.a.causal); }},
    {"log2_queries", [](const AttentionInputs& x) { return log2_of(x.a.queries); }},
    {"fill_m", [](const AttentionInputs& x) { return fill_of(x.a.queries, kQueryTile); }},
    {"log2_tiles",
     [](const AttentionInputs& x) {
       return log2_of(static_cast<double>(x.a.batch) * static_cast<double>(x.a.heads) *
                      static_cast<double>(ceil_divide(x.a.queries, kQueryTile)));
     }},
});

using Prefill = FeatureTable<kAttention, kPrefill>;
using Decode = FeatureTable<kAttention>;

/// Attention to selected keys was not measured.
bool is_sparse(const Kernel& kernel) {
  static const OpId ops[] = {*find_op("sparse_attention"), *find_op("index_scores")};
  return kernel.op == ops[0] || kernel.op == ops[1];
}

}  // namespace

KernelKindDef attention_kind() {
  return {.name = "attention",
          .covers =
              [](const Kernel& kernel) {
                const Attention* attention = kernel.as<Attention>();
                return attention != nullptr && !attention->is_decode() && !is_sparse(kernel);
              },
          .law = prefill_law,
          .cold = true,
          .features = Prefill::names(),
          .learning = kLearnedFromLayers,
          .make = [](const Kernel& kernel,
                     const Conditions&) { return Prefill::values(attention_inputs(kernel)); }};
}

KernelKindDef decode_attention_kind() {
  return {.name = "decode_attention",
          .covers =
              [](const Kernel& kernel) {
                const Attention* attention = kernel.as<Attention>();
                return attention != nullptr && attention->is_decode() && !is_sparse(kernel);
              },
          .law = decode_law,
          .cold = true,
          .features = Decode::names(),
          .learning = kLearnedFromLayers,
          .make = [](const Kernel& kernel,
                     const Conditions&) { return Decode::values(attention_inputs(kernel)); }};
}

}  // namespace tilecast
