#include "predict/kernel_kinds.h"

#include "base/check.h"

namespace tilecast {

const KernelKindDef& kernel_kind_def(KernelKind kind) {
  // In the order of KernelKind.
  static const std::array<KernelKindDef, kKernelKindCount> models = {
      matmul_kind(),     causal_conv_kind(),   elementwise_kind(), softmax_kind(),
      layer_norm_kind(), tensor_matmul_kind(), attention_kind(),   decode_attention_kind(),
      experts_kind(),    scan_kind(),          scan_step_kind(),   convolution_kind(),
      block_rows_kind()};
  return models[static_cast<size_t>(kind)];
}

std::string_view kernel_kind_name(KernelKind kind) { return kernel_kind_def(kind).name; }

const std::vector<std::string_view>& feature_names(KernelKind kind) {
  return kernel_kind_def(kind).features;
}

std::optional<KernelKind> find_kernel_kind(const Kernel& kernel) {
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const auto kind = static_cast<KernelKind>(n);
    if (kernel_kind_def(kind).covers(kernel)) return kind;
  }
  return std::nullopt;
}

KernelKind kernel_kind(const Kernel& kernel) {
  const std::optional<KernelKind> kind = find_kernel_kind(kernel);
  TILECAST_CHECK(kind.has_value()) << "no learned model is for this kernel";
  return *kind;
}

}  // namespace tilecast
