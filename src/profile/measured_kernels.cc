#include "profile/measured_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"
#include "profile/read_trace.h"
#include "profile/traced_gpu.h"
#include "scenario/internal.h"

namespace tilecast {
namespace {

/// Libraries split products, convolutions and attention into several kernels, and take transposed
/// operands as they are; others have one kernel, which gaps and other orders of elements slow down.
bool is_plain(const OperatorGroup& group) {
  const Kernel& kernel = group.work.kernels.front();
  if (kernel.is<Gemm>() || kernel.is<Convolution>() || kernel.is<Attention>()) return true;
  // No measured kernel that the laws learned from only writes.
  if (kernel.read_bytes == 0) return false;
  return !group.work.is_strided && static_cast<double>(group.events.size()) == group.calls;
}

bool is_sure(const OperatorGroup& group, const ProfilerTrace& trace) {
  return group.kind == TracedKind::kForecast && group.work.kernels.size() == 1 && is_plain(group) &&
         std::any_of(group.events.begin(), group.events.end(),
                     [&](int32_t i) { return trace.events[static_cast<size_t>(i)].op >= 0; });
}

void check_device(const ProfilerTrace& trace, const std::string& path, const Device& device,
                  const TraceConstants& constants) {
  const TracedDevice* traced = traced_device(trace);
  const std::optional<Device> known =
      traced == nullptr ? std::nullopt : known_device(*traced, constants);
  if (known && known->id != device.id)
    fail_input(printable(path), fmt::format("it was made on {}, not on {}", known->id, device.id));
}

}  // namespace

MeasuredKernels measured_kernels(const Forecaster& forecaster, const std::string& path,
                                 const Device& device) {
  const LawConstants& laws = forecaster.impl().learned->laws();
  const ProfilerTrace trace = read_profiler_trace(path);
  check_gpu_work(trace, path, "learn from");
  check_device(trace, path, device, laws.trace);
  const double profiler_start_s = trace.is_amd ? laws.trace.amd_start_s : laws.trace.nvidia_start_s;
  MeasuredKernels measured;
  int64_t total_ns = 0, sure_ns = 0;
  for (const OperatorGroup& group : operator_groups(trace)) {
    total_ns += group.total_ns;
    if (!is_sure(group, trace)) continue;
    const Kernel& kernel = group.work.kernels.front();
    const bool short_start = kernel.is<Stream>() || kernel.is<Rows>();
    const double seconds =
        median_call_s(group, trace) + (short_start ? laws.stream.start_s - profiler_start_s : 0);
    if (seconds <= 0) continue;
    measured.kernels.push_back({kernel, seconds});
    sure_ns += group.total_ns;
  }
  measured.share =
      static_cast<double>(sure_ns) / static_cast<double>(std::max<int64_t>(1, total_ns));
  return measured;
}

}  // namespace tilecast
