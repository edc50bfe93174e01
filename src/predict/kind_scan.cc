// Linear attention: recurrences over tokens, and the short convolutions before them.

#include <algorithm>

#include "ops/op_def.h"
#include "predict/features.h"

namespace tilecast {
namespace {

using F = Feature<Kernel>;

const Scan& scan_of(const Kernel& kernel) { return std::get<Scan>(kernel.shape); }

constexpr auto kScanFeatures = std::to_array<F>({
    // Few layers were measured: heads of one sequence and of several count alike.
    {"log2_all_heads",
     [](const Kernel& x) {
       return log2_of(static_cast<double>(scan_of(x).batch) *
                      static_cast<double>(scan_of(x).heads));
     }},
    {"log2_tokens", [](const Kernel& x) { return log2_of(scan_of(x).tokens); }},
    {"log2_head_size", [](const Kernel& x) { return log2_of(scan_of(x).head_dim); }},
    {"log2_state_size", [](const Kernel& x) { return log2_of(scan_of(x).state_dim); }},
    {"log2_bytes", [](const Kernel& x) { return log2_of(x.bytes()); }},
    {"log2_flops", [](const Kernel& x) { return log2_of(x.flops); }},
});

constexpr auto kConvFeatures = std::to_array<F>({
    {"log2_bytes", [](const Kernel& x) { return log2_of(x.bytes()); }},
    {"log2_flops", [](const Kernel& x) { return log2_of(x.flops); }},
    {"log2_elements", [](const Kernel& x) { return log2_of(std::get<Stream>(x.shape).elements); }},
    {"read_share",
     [](const Kernel& x) {
       return static_cast<float>(static_cast<double>(x.read_bytes) /
                                 static_cast<double>(std::max<int64_t>(1, x.bytes())));
     }},
});

bool is_causal_conv(const Kernel& kernel) {
  static const OpId op = *find_op("causal_conv1d");
  return kernel.op == op && kernel.is<Stream>();
}

template <bool kStep>
KernelKindDef model(std::string_view name) {
  return {.name = name,
          .covers =
              [](const Kernel& kernel) {
                const Scan* scan = kernel.as<Scan>();
                return scan != nullptr && !scan->backward && (scan->tokens == 1) == kStep;
              },
          .law = scan_law,
          .features = FeatureTable<kScanFeatures>::names(),
          .learning = kLearnedFromLayers,
          .make = [](const Kernel& kernel,
                     const Conditions&) { return FeatureTable<kScanFeatures>::values(kernel); }};
}

}  // namespace

KernelKindDef scan_kind() { return model<false>("scan"); }

/// Software has another kernel for one token of each sequence.
KernelKindDef scan_step_kind() { return model<true>("scan_step"); }

KernelKindDef causal_conv_kind() {
  return {.name = "causal_conv",
          .covers = is_causal_conv,
          .law = stream_law,
          .features = FeatureTable<kConvFeatures>::names(),
          .learning = kLearnedFromLayers,
          .make = [](const Kernel& kernel, const Conditions&) {
            return FeatureTable<kConvFeatures>::values(kernel);
          }};
}

}  // namespace tilecast
