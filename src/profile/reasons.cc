// Why a call takes longer than it should, as far as its tensors and the names of its kernels tell.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "profile/operators.h"
#include "profile/timeline.h"

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

/// "[1, 197, 768]": the first tensor that is broadcast to the others' shape; "": none.
std::string repeated_tensor(const OperatorCall& call) {
  int64_t most = 0;
  for (const TracedArgument& argument : arguments_of(call))
    for (const TracedTensor& tensor : argument.tensors) most = std::max(most, tensor.elements());
  for (const TracedArgument& argument : arguments_of(call))
    for (const TracedTensor& tensor : argument.tensors)
      if (!argument.is_list && !tensor.is_scalar() && tensor.elements() < most)
        return format_shape(tensor.shape);
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

/// Blocks of the kernel that takes most of the time.
int64_t blocks_of(const OperatorGroup& group, const ProfilerTrace& trace) {
  for (const int32_t i : group.events) {
    const DeviceEvent& event = trace.events[static_cast<size_t>(i)];
    if (event.name != group.kernel || event.grid[0] == 0) continue;
    int64_t blocks = 1;
    for (const int32_t size : event.grid) blocks *= std::clamp<int32_t>(size, 0, 1 << 20);
    return blocks;
  }
  return 0;
}

int64_t sms_of(const ProfilerTrace& trace) {
  return trace.devices.empty() ? 0 : trace.devices.front().sm_count;
}

/// Elements that cat joins at a time: of the dimension and those behind it.
int64_t joined_elements(const OperatorCall& call) {
  const Arguments arguments = arguments_of(call);
  if (arguments.empty() || arguments[0].tensors.empty()) return 0;
  const Shape& shape = arguments[0].tensors.front().shape;
  const auto dims = static_cast<int64_t>(shape.size());
  const int64_t dim = number_at(arguments, 1, 0);
  int64_t elements = 1;
  for (int64_t d = std::max<int64_t>(0, dim < 0 ? dim + dims : dim); d < dims; ++d)
    elements *= std::min<int64_t>(shape[static_cast<size_t>(d)], 1 << 20);
  return elements;
}

/// The reason that the operator tells; "": none.
std::string by_operator(const OperatorCall& call, const TraceConstants& constants) {
  if (call.name == "aten::embedding_dense_backward")
    return "it sorts the ids before it sums their rows";
  if (call.name == "aten::cat")
    if (const int64_t joined = joined_elements(call);
        joined > 0 && static_cast<double>(joined) < constants.long_pieces)
      return fmt::format("it joins pieces of {} elements", joined);
  return "";
}

const Convolution* convolution_of(const OperatorGroup& group) {
  for (const Kernel& kernel : group.work.kernels)
    if (const Convolution* convolution = kernel.as<Convolution>()) return convolution;
  return nullptr;
}

const Gemm* product_of(const OperatorGroup& group) {
  for (const Kernel& kernel : group.work.kernels)
    if (const Gemm* gemm = kernel.as<Gemm>()) return gemm;
  return nullptr;
}

/// The reason that the kernel's name tells; "": none.
std::string by_name(const std::string& kernel) {
  if (contains(kernel, "sm90_xmma_gemm"))
    return "a kernel of an older cuBLAS, which newer ones replace (nvjet)";
  if (contains(kernel, "cutlass_80") || contains(kernel, "ampere_") || contains(kernel, "sm80_"))
    return "the library chose a kernel that was written for Ampere";
  if (contains(kernel, "pytorch_flash::"))
    return "FlashAttention 2, which does not use the matrix instructions of newer GPUs: try "
           "cuDNN's attention";
  if (kernel == "attn_fwd" || kernel == "bwd_kernel_fuse" || kernel == "bwd_kernel_dk_dv")
    return "attention by Triton: try the kernels of AITER or Composable Kernel";
  if (contains(kernel, "unrolled_elementwise_kernel"))
    return "tensors of two dtypes: the kernel loads element by element, a compiled model casts in "
           "the kernel before";
  if (contains(kernel, "cunn_SoftMax") || contains(kernel, "softmax_warp"))
    return "softmax as a kernel of its own: a fused loss or attention would leave it out";
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

Reasons::Reasons(const ProfilerTrace& trace, const TraceConstants& constants)
    : trace_(trace), constants_(constants) {
  std::vector<bool> named(trace.names.size());
  for (size_t i = 0; i < named.size(); ++i)
    named[i] = is_collective_kernel(trace.names[static_cast<int32_t>(i)]);
  for (const DeviceEvent& event : trace.events) {
    if (event.collective < 0 && !named[static_cast<size_t>(event.name)]) continue;
    std::vector<TraceSpan>& spans = collectives_[event.device];
    if (!spans.empty() && event.start_ns <= spans.back().end_ns) {
      spans.back().end_ns = std::max(spans.back().end_ns, event.end_ns());
    } else {
      spans.push_back({event.start_ns, event.end_ns()});
    }
  }
}

double Reasons::beside_collectives(const OperatorGroup& group) const {
  int64_t sum = 0;
  for (const int32_t i : group.events) {
    const DeviceEvent& event = trace_.events[static_cast<size_t>(i)];
    const auto found = collectives_.find(event.device);
    if (found == collectives_.end()) continue;
    const std::vector<TraceSpan>& spans = found->second;
    // Those of its own stream end before it begins.
    auto span = std::upper_bound(spans.begin(), spans.end(), event.start_ns,
                                 [](int64_t at, const TraceSpan& one) { return at < one.end_ns; });
    for (; span != spans.end() && span->start_ns < event.end_ns(); ++span)
      sum += std::min(span->end_ns, event.end_ns()) - std::max(span->start_ns, event.start_ns);
  }
  return static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, group.total_ns));
}

std::string Reasons::of(const OperatorGroup& group, double ratio) const {
  const OperatorCall& call = trace_.calls[static_cast<size_t>(group.call)];
  const std::string& kernel = trace_.names[group.kernel];
  constexpr int64_t kVector = 8;
  if (const double share = layout_share(group, trace_); share > constants_.named_layout_share)
    return fmt::format("{:.0f} % of it changes the layout of images: keep them in channels_last",
                       100 * share);
  if (const Gemm* gemm = product_of(group); gemm != nullptr && gemm->k == 1)
    return "a product with k = 1: multiply element by element";
  if (const Gemm* gemm = product_of(group); gemm != nullptr && gemm->row_alignment < kVector)
    return "rows that are no multiple of 8 elements: pad them";
  if (const Convolution* c = convolution_of(group);
      c != nullptr && c->in_channels / c->groups % kVector != 0)
    return fmt::format("{} input channels, no multiple of 8, do not fill the matrix units",
                       c->in_channels / c->groups);
  if (std::string reason = by_operator(call, constants_); !reason.empty()) return reason;
  if (const int64_t blocks = blocks_of(group, trace_); blocks > 0 && 2 * blocks < sms_of(trace_))
    return fmt::format("{} most of the {} SMs idle",
                       blocks == 1 ? "1 block leaves" : fmt::format("{} blocks leave", blocks),
                       sms_of(trace_));
  constexpr double kMostly = 0.5;
  if (beside_collectives(group) > kMostly)
    return "a collective of another stream shares the GPU with it";
  const bool streams = !group.work.kernels.empty() && group.work.kernels.front().is<Stream>();
  if (streams && group.work.is_strided)
    return fmt::format("{:.1f} x its bytes: {} is not stored row by row", ratio,
                       strided_tensor(call));
  if (streams)
    if (const std::string repeated = repeated_tensor(call); !repeated.empty())
      return fmt::format("{} is repeated: the kernel computes the place of each element", repeated);
  if (std::string reason = by_name(kernel); !reason.empty()) return reason;
  return "the trace does not tell: another kernel, a lower clock, or what the forecast misses";
}

}  // namespace tilecast
