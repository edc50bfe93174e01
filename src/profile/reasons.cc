// Why a call takes longer than it should, as far as its tensors and the names of its kernels tell.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "profile/operators.h"

namespace tilecast {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "[16, 559, 1024] by [572416, 1, 559]": the first tensor that is not stored row by row.
std::string strided_tensor(const OperatorCall& call) {
  for (const TracedArgument& argument : arguments_of(call))
    for (const TracedTensor& tensor : argument.tensors)
      if (!tensor.is_row_major())
        return format_shape(tensor.shape) + " with strides " + format_shape(tensor.strides);
  return "";
}

/// Share of a group's time in kernels that transform the layout of images.
double layout_share(const OperatorGroup& group, const ProfilerTrace& trace) {
  static constexpr std::string_view kNames[] = {"nchwToNhwc", "nhwcToNchw", "NCHW2CNHW",
                                                "CNHW2NCHW", "batched_transpose"};
  int64_t sum = 0;
  for (const int32_t event : group.events) {
    const DeviceEvent& e = trace.events[static_cast<size_t>(event)];
    const std::string& name = trace.names[e.name];
    if (std::any_of(std::begin(kNames), std::end(kNames),
                    [&](std::string_view part) { return contains(name, part); }))
      sum += e.duration_ns;
  }
  return static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, group.total_ns));
}

const Gemm* product_of(const OperatorGroup& group) {
  for (const Kernel& kernel : group.work.kernels)
    if (const Gemm* gemm = kernel.as<Gemm>()) return gemm;
  return nullptr;
}

/// The reason that the kernel's name tells; "": none.
std::string by_name(const std::string& kernel) {
  if (contains(kernel, "cutlass_80") || contains(kernel, "ampere_") || contains(kernel, "sm80_"))
    return "the library chose a kernel that was written for Ampere";
  if (contains(kernel, "pytorch_flash::"))
    return "FlashAttention 2, which does not use the matrix instructions of newer GPUs: try "
           "cuDNN's attention";
  if (kernel == "attn_fwd" || kernel == "bwd_kernel_fuse" || kernel == "bwd_kernel_dk_dv")
    return "attention by Triton: try the kernels of AITER or Composable Kernel";
  if (contains(kernel, "cunn_SoftMax") || contains(kernel, "softmax_warp"))
    return "softmax as a kernel of its own: a fused loss or attention would leave it out";
  if (contains(kernel, "elementwise_kernel<128, 4") || contains(kernel, "manual_unroll"))
    return "a kernel that computes the place of each element";
  return "";
}

}  // namespace

std::string sizes_of(const OperatorCall& call) {
  constexpr size_t kMostTensors = 4;
  std::vector<std::string> texts;
  for (const TracedArgument& argument : arguments_of(call)) {
    if (argument.is_list && !argument.tensors.empty()) {
      texts.push_back(fmt::format("{} tensors from {}", argument.tensors.size(),
                                  format_shape(argument.tensors.front().shape)));
      continue;
    }
    for (const TracedTensor& tensor : argument.tensors)
      if (!tensor.is_scalar()) texts.push_back(format_shape(tensor.shape));
  }
  const bool more = texts.size() > kMostTensors;
  if (more) texts.resize(kMostTensors);
  return join(texts, " ") + (more ? " …" : "");
}

std::string dtype_of(const OperatorCall& call) {
  for (const TracedArgument& argument : arguments_of(call))
    for (const TracedTensor& tensor : argument.tensors)
      if (tensor.dtype && !tensor.is_scalar()) return std::string(dtype_name(*tensor.dtype));
  return "";
}

std::string reason_of(const OperatorGroup& group, const ProfilerTrace& trace, double ratio) {
  const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
  const std::string& kernel = trace.names[group.kernel];
  constexpr double kWorthNaming = 0.15;
  constexpr int64_t kVector = 8;
  if (const double share = layout_share(group, trace); share > kWorthNaming)
    return fmt::format("{:.0f} % of it changes the layout of images: keep them in channels_last",
                       100 * share);
  if (const Gemm* gemm = product_of(group); gemm != nullptr && gemm->row_alignment < kVector)
    return "rows that are no multiple of 8 elements: pad them";
  const bool streams = !group.work.kernels.empty() && group.work.kernels.front().is<Stream>();
  if (streams && group.work.is_strided)
    return fmt::format("{:.1f} x its bytes: {} is not stored row by row", ratio,
                       strided_tensor(call));
  if (std::string reason = by_name(kernel); !reason.empty()) return reason;
  return "the trace does not tell: another kernel, a lower clock, or what the forecast misses";
}

}  // namespace tilecast
