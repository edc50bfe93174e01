#include "profile/timeline.h"

#include <algorithm>
#include <array>

namespace tilecast {
namespace {

enum class Why : uint8_t { kHost, kSynchronization, kBetween, kUnknown };
constexpr std::array<const char*, 4> kWhyNames = {"host", "synchronization", "between kernels",
                                                  "unknown"};

/// Why the GPU waited from `from` on for this event.
Why why_idle(const ProfilerTrace& trace, const DeviceEvent& event, int64_t from) {
  if (event.launch < 0) return Why::kUnknown;
  const RuntimeCall& launch = trace.runtime[static_cast<size_t>(event.launch)];
  if (launch.end_ns() <= from) return Why::kBetween;
  // The host launched after the work had ended. Was it waiting for that end?
  for (int32_t i = event.launch - 1; i >= 0; --i) {
    const RuntimeCall& call = trace.runtime[static_cast<size_t>(i)];
    constexpr int64_t kFarNs = 1'000'000'000;
    constexpr int32_t kMostCalls = 1000;
    if (call.start_ns < from - kFarNs || event.launch - i > kMostCalls) break;
    if (call.end_ns() < from) continue;
    // It began before the end and ended after it.
    if (call.start_ns <= from && may_wait(trace.names[call.name])) return Why::kSynchronization;
  }
  return Why::kHost;
}

/// Total length of the union of events, which are sorted by their start.
template <typename Wanted>
int64_t union_ns(const ProfilerTrace& trace, Wanted wanted) {
  int64_t sum = 0, end = 0;
  for (const DeviceEvent& event : trace.events) {
    if (!wanted(event)) continue;
    sum += std::max<int64_t>(0, event.end_ns() - std::max(end, event.start_ns));
    end = std::max(end, event.end_ns());
  }
  return sum;
}

}  // namespace

bool is_collective_kernel(std::string_view name) {
  return name.find("nccl") != std::string_view::npos || name.find("rccl") != std::string_view::npos;
}

bool may_wait(std::string_view call) {
  return call.find("Synchronize") != std::string_view::npos ||
         call.find("Memcpy") != std::string_view::npos ||
         call.find("EventQuery") != std::string_view::npos;
}

TraceSpan span_of(const ProfilerTrace& trace) {
  if (trace.events.empty()) return {};
  TraceSpan span{trace.events.front().start_ns, 0};
  for (const DeviceEvent& event : trace.events) {
    span.end_ns = std::max(span.end_ns, event.end_ns());
    if (event.launch >= 0)
      span.start_ns =
          std::min(span.start_ns, trace.runtime[static_cast<size_t>(event.launch)].start_ns);
  }
  return span;
}

TracedBusy busy_time(const ProfilerTrace& trace, const TraceSpan& span) {
  TracedBusy time;
  std::array<TracedIdle, kWhyNames.size()> idle;
  int64_t end = span.start_ns;
  for (const DeviceEvent& event : trace.events) {
    if (event.start_ns > end) {
      TracedIdle& one = idle[static_cast<size_t>(why_idle(trace, event, end))];
      one.seconds += static_cast<double>(event.start_ns - end) / 1e9;
      ++one.gaps;
    }
    end = std::max(end, event.end_ns());
  }
  time.busy_ns = union_ns(trace, [](const DeviceEvent&) { return true; });
  time.exposed_collectives_ns = time.busy_ns - union_ns(trace, [&](const DeviceEvent& event) {
                                  return !is_collective_kernel(trace.names[event.name]);
                                });
  for (size_t i = 0; i < idle.size(); ++i) {
    if (idle[i].gaps == 0) continue;
    idle[i].why = kWhyNames[i];
    idle[i].share = idle[i].seconds * 1e9 / static_cast<double>(std::max<int64_t>(1, span.ns()));
    time.idle.push_back(idle[i]);
  }
  std::stable_sort(time.idle.begin(), time.idle.end(),
                   [](const TracedIdle& a, const TracedIdle& b) { return a.seconds > b.seconds; });
  return time;
}

std::vector<TracedStep> step_times(const ProfilerTrace& trace) {
  std::vector<TracedStep> steps;
  for (const ProfilerStep& step : trace.steps)
    steps.push_back({step.name, static_cast<double>(step.duration_ns) / 1e9, 0});
  std::vector<int64_t> busy_ns(steps.size(), 0), ends(steps.size(), 0);
  for (const DeviceEvent& event : trace.events) {
    if (event.launch < 0) continue;
    // The last step that began before the launch; steps do not overlap.
    const int64_t at = trace.runtime[static_cast<size_t>(event.launch)].start_ns;
    const auto later =
        std::upper_bound(trace.steps.begin(), trace.steps.end(), at,
                         [](int64_t t, const ProfilerStep& step) { return t < step.start_ns; });
    if (later == trace.steps.begin() || at >= std::prev(later)->end_ns()) continue;
    const auto i = static_cast<size_t>(std::prev(later) - trace.steps.begin());
    busy_ns[i] += std::max<int64_t>(0, event.end_ns() - std::max(ends[i], event.start_ns));
    ends[i] = std::max(ends[i], event.end_ns());
  }
  for (size_t i = 0; i < steps.size(); ++i) steps[i].busy_s = static_cast<double>(busy_ns[i]) / 1e9;
  return steps;
}

}  // namespace tilecast
