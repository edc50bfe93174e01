#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "devices/vendor.h"
#include "ops/op_def.h"
#include "predict/interval.h"
#include "predict/power.h"
#include "predict/unmeasured.h"
#include "profile/operators.h"
#include "profile/timeline.h"
#include "scenario/intervals.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// How many calls the events stand for: operators of the trace, and the same number of events for
/// each call that began before it.
double calls_of(const OperatorGroup& group, const ProfilerTrace& trace) {
  if (group.call < 0) return static_cast<double>(group.events.size());
  std::set<int32_t> operators;
  size_t with_operator = 0;
  for (const int32_t event : group.events) {
    const int32_t op = trace.events[static_cast<size_t>(event)].op;
    if (op < 0) continue;
    operators.insert(op);
    ++with_operator;
  }
  if (with_operator == 0) return 1;
  return static_cast<double>(operators.size()) * static_cast<double>(group.events.size()) /
         static_cast<double>(with_operator);
}

void find_kernel(OperatorGroup& group, const ProfilerTrace& trace) {
  std::map<int32_t, int64_t> by_name;
  int64_t most = -1;
  for (const int32_t event : group.events) {
    const DeviceEvent& e = trace.events[static_cast<size_t>(event)];
    int64_t& sum = by_name[e.name];
    sum += e.duration_ns;
    group.total_ns += e.duration_ns;
    if (sum > most) {
      most = sum;
      group.kernel = e.name;
    }
  }
}

void find_kind(OperatorGroup& group, const ProfilerTrace& trace) {
  const DeviceEvent& first = trace.events[static_cast<size_t>(group.events.front())];
  const std::string& kernel = trace.names[group.kernel];
  if (first.work != DeviceWork::kKernel) {
    group.kind = TracedKind::kTransfer;
  } else if (group.collective >= 0 || is_collective_kernel(kernel)) {
    group.kind = TracedKind::kCollective;
  } else if (group.call >= 0) {
    const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
    if (std::optional<CallWork> work = work_of(call, hints_of(kernel))) {
      group.work = std::move(*work);
      group.kind = group.work.by_traffic ? TracedKind::kTraffic : TracedKind::kForecast;
    }
  }
}

/// Kernels whose law begins with the start of a stream, which profilers state otherwise.
int64_t short_starts(const CallWork& work) {
  return std::count_if(work.kernels.begin(), work.kernels.end(), [](const Kernel& kernel) {
    return kernel.is<Stream>() || kernel.is<Rows>();
  });
}

GroupTime time_of(const CallWork& work, const std::vector<KernelTime>& times, double shift_s,
                  double kept_share) {
  GroupTime sum;
  double longest = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const KernelTime& time = times[i];
    sum.seconds.value += time.seconds;
    sum.seconds.low += time.low_s;
    sum.seconds.high += time.high_s;
    sum.extrapolated = sum.extrapolated || time.extrapolated;
    if (time.seconds <= longest) continue;
    longest = time.seconds;
    sum.limit = limit_name(time.limit);
    sum.predictor = time.predictor;
    sum.common_share = time.common_share;
  }
  // The shift leaves a part of the forecast at least: it corrects the start, not the work.
  const double shift = std::max(shift_s * static_cast<double>(short_starts(work)),
                                -sum.seconds.low * (1 - kept_share));
  sum.seconds.value += shift;
  sum.seconds.low += shift;
  sum.seconds.high += shift;
  return sum;
}

/// Kernels that the device has units for; a call with another one has no time.
bool predicts(const Predictor& predictor, const CallWork& work, const Device& device,
              std::vector<KernelTime>& times) {
  times.assign(work.kernels.size(), {});
  try {
    predictor.predict(work.kernels, device, {}, times);
    for (size_t i = 0; work.by_traffic && i < times.size(); ++i)
      mark_unmeasured(work.kernels[i], predictor.laws().intervals, times[i]);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    return false;
  }
}

bool is_amd(const Device& device) {
  const Gpu* gpu = device.as_gpu();
  return gpu != nullptr && is_amd(gpu->architecture);
}

}  // namespace

std::vector<OperatorGroup> operator_groups(const ProfilerTrace& trace) {
  std::map<std::pair<int32_t, int32_t>, OperatorGroup> by_key;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const DeviceEvent& event = trace.events[i];
    constexpr int32_t kNoCall = -1, kCollective = -2;
    const bool by_call =
        event.call >= 0 && event.work == DeviceWork::kKernel && event.collective < 0;
    OperatorGroup& group = by_key[by_call                 ? std::pair{event.call, int32_t{-1}}
                                  : event.collective >= 0 ? std::pair{kCollective, event.collective}
                                                          : std::pair{kNoCall, event.name}];
    group.call = by_call ? event.call : -1;
    group.collective = event.collective;
    group.events.push_back(static_cast<int32_t>(i));
  }
  std::vector<OperatorGroup> groups;
  for (auto& [key, group] : by_key) {
    find_kernel(group, trace);
    find_kind(group, trace);
    group.calls = calls_of(group, trace);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  return groups;
}

std::vector<GroupTime> group_times(const std::vector<OperatorGroup>& groups,
                                   const Predictor& predictor, const Device& device,
                                   double elapsed_s) {
  std::vector<std::vector<KernelTime>> times(groups.size());
  std::vector<Kernel> kernels;
  std::vector<KernelTime> all;
  std::vector<double> counts;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!predicts(predictor, groups[i].work, device, times[i])) times[i].clear();
    if (times[i].empty()) continue;
    kernels.insert(kernels.end(), groups[i].work.kernels.begin(), groups[i].work.kernels.end());
    all.insert(all.end(), times[i].begin(), times[i].end());
    counts.insert(counts.end(), times[i].size(), groups[i].calls);
  }
  if (const auto board = board_power(device, predictor.laws().power)) {
    add_energies(*board, kernels, {}, 1, all);
    hold_power(*board, {kernels, counts, elapsed_s}, all);
  }
  const TraceConstants& constants = predictor.laws().trace;
  const double start_s = is_amd(device) ? constants.amd_start_s : constants.nvidia_start_s;
  const double shift_s = start_s - predictor.laws().stream.start_s;
  std::vector<GroupTime> result(groups.size());
  size_t next = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (times[i].empty()) continue;
    std::copy_n(all.begin() + static_cast<ptrdiff_t>(next), times[i].size(), times[i].begin());
    next += times[i].size();
    result[i] = time_of(groups[i].work, times[i], shift_s, constants.kept_by_start_share);
  }
  return result;
}

std::vector<GroupTime> carried_times(const std::vector<OperatorGroup>& groups,
                                     const std::vector<GroupTime>& here,
                                     const std::vector<GroupTime>& there, const Device& from,
                                     const Device& to, const TraceConstants& constants) {
  const double bandwidths = from.memory_bytes_per_s / to.memory_bytes_per_s;
  const double kept = is_amd(from) == is_amd(to) ? 1 : constants.other_vendor_share;
  std::vector<GroupTime> result(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    const double measured_s = groups[i].measured_s();
    GroupTime& time = result[i];
    if (here[i].seconds > 0 && there[i].seconds > 0) {
      time = there[i];
      // What the law misses here, it misses there as well, in so far as the kernels are alike.
      time.seconds = scaled(time.seconds, std::pow(measured_s / here[i].seconds, kept));
      continue;
    }
    // Transfers to and from the host, and collectives, do not depend on the GPU's own units.
    const bool as_here =
        groups[i].kind == TracedKind::kCollective || groups[i].kind == TracedKind::kTransfer;
    const double value = measured_s * (as_here ? 1 : bandwidths);
    const double factor = std::exp(IntervalLaw::kUnknown);
    time.seconds = {value, value / factor, value * factor};
    time.predictor = as_here ? "as measured" : "ratio of bandwidths";
  }
  return result;
}

Interval sum_of(const std::vector<OperatorGroup>& groups, const std::vector<GroupTime>& times) {
  SummedErrors errors;
  double sum = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Interval& t = times[i].seconds;
    sum += t.value * groups[i].calls;
    errors.add(times[i].predictor, times[i].common_share, (t.value - t.low) * groups[i].calls,
               (t.high - t.value) * groups[i].calls);
  }
  return {sum, std::max(0.0, sum - errors.low()), sum + errors.high()};
}

}  // namespace tilecast
