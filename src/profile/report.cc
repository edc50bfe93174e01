// What a trace shows, beside what it should take, and on another GPU.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "profile/operators.h"
#include "profile/replay.h"
#include "profile/timeline.h"
#include "profile/traced_gpu.h"
#include "scenario/internal.h"
#include "tilecast/error.h"
#include "tilecast/profile.h"

namespace tilecast {
namespace {

double seconds_of(int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// A trace with its groups and their forecasts on its GPU.
struct ReadTrace {
  ProfilerTrace trace;
  TraceSpan span;
  std::vector<OperatorGroup> groups;
  std::optional<Device> device;
  std::vector<GroupTime> times;  ///< on `device`
};

ReadTrace read(const Forecaster& forecaster, const std::string& path,
               const std::optional<GpuRef>& gpu) {
  ReadTrace one;
  one.trace = read_profiler_trace(path);
  one.span = span_of(one.trace);
  one.groups = operator_groups(one.trace);
  if (gpu) {
    one.device = gpu->content->device;
  } else if (const TracedDevice* traced = traced_device(one.trace)) {
    one.device = known_device(*traced, forecaster.impl().learned->laws().trace);
  }
  one.times.resize(one.groups.size());
  if (one.device)
    one.times =
        group_times(one.groups, *forecaster.impl().learned, *one.device, seconds_of(one.span.ns()));
  return one;
}

/// The median time of a call, by its operators of the trace.
double median_call_s(const OperatorGroup& group, const ProfilerTrace& trace) {
  std::map<int32_t, int64_t> by_operator;
  for (const int32_t i : group.events) {
    const DeviceEvent& event = trace.events[static_cast<size_t>(i)];
    if (event.op >= 0) by_operator[event.op] += event.duration_ns;
  }
  if (by_operator.empty()) return group.measured_s();
  std::vector<int64_t> sums;
  for (const auto& [op, sum] : by_operator) sums.push_back(sum);
  const auto middle = sums.begin() + static_cast<ptrdiff_t>(sums.size() / 2);
  std::nth_element(sums.begin(), middle, sums.end());
  return seconds_of(*middle);
}

TracedOperator describe(const OperatorGroup& group, const GroupTime& time, const ReadTrace& one,
                        int64_t total_ns, double least_s, const TraceConstants& constants) {
  const ProfilerTrace& trace = one.trace;
  TracedOperator row;
  row.kernel = printable(trace.names[group.kernel]);
  row.kind = group.kind;
  row.calls = group.calls;
  row.kernels = static_cast<int64_t>(group.events.size());
  row.measured_s = group.measured_s();
  row.total_s = seconds_of(group.total_ns);
  row.share = row.total_s / seconds_of(std::max<int64_t>(1, total_ns));
  if (group.call >= 0) {
    const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
    row.name = printable(call.name);
    row.sizes = sizes_of(call);
    row.dtype = dtype_of(call);
  } else {
    row.name = row.kernel;
  }
  for (const Kernel& kernel : group.work.kernels) {
    row.flops += kernel.flops;
    row.bytes += kernel.bytes();
  }
  if (!(time.seconds > 0)) return row;
  row.forecast = time.seconds;
  row.ratio = row.measured_s / time.seconds;
  row.limit = time.limit;
  row.predictor = time.predictor;
  row.extrapolated = time.extrapolated;
  // Less than the start of a kernel is nothing that a change of it would bring.
  const double typical_s = std::min(row.measured_s, median_call_s(group, trace));
  row.slow = typical_s > time.seconds.high && typical_s - time.seconds > least_s;
  if (!row.slow) return row;
  row.reason = reason_of(group, trace, row.ratio, constants);
  row.gain_s = (typical_s - time.seconds) * group.calls;
  return row;
}

void add_operators(TraceReport& report, const ReadTrace& one, double least_s,
                   const TraceConstants& constants) {
  int64_t total_ns = 0;
  for (const DeviceEvent& event : one.trace.events) total_ns += event.duration_ns;
  report.kernels_s = seconds_of(total_ns);
  for (size_t i = 0; i < one.groups.size(); ++i) {
    TracedOperator row = describe(one.groups[i], one.times[i], one, total_ns, least_s, constants);
    report.gain_s += row.gain_s;
    if (row.forecast) report.forecast_share += row.share;
    if (row.kind == TracedKind::kUnknown) report.unknown_share += row.share;
    report.operators.push_back(std::move(row));
  }
}

void add_times(TraceReport& report, const ReadTrace& one) {
  const TracedBusy busy = busy_time(one.trace, one.span);
  report.span_s = seconds_of(one.span.ns());
  report.busy_s = seconds_of(busy.busy_ns);
  report.idle_s = std::max(0.0, report.span_s - report.busy_s);
  report.idle_share = report.span_s > 0 ? report.idle_s / report.span_s : 0;
  report.exposed_communication_s = seconds_of(busy.exposed_collectives_ns);
  report.idle = busy.idle;
  report.steps = step_times(one.trace);
  if (!report.steps.empty()) {
    std::vector<double> spans;
    for (const TracedStep& step : report.steps) spans.push_back(step.span_s);
    std::sort(spans.begin(), spans.end());
    report.step_s = spans[spans.size() / 2];
    report.step_spread = spans.front() > 0 ? spans.back() / spans.front() - 1 : 0;
  }
  std::set<std::pair<int32_t, int32_t>> streams;
  for (const DeviceEvent& event : one.trace.events) {
    streams.insert({event.device, event.stream});
    report.graph_kernels += event.in_graph ? 1 : 0;
  }
  report.kernels = static_cast<int64_t>(one.trace.events.size());
  report.streams = static_cast<int64_t>(streams.size());
}

/// What a file lacks; `name` stands before it, where it is not the report's trace.
void warn_of_file(TraceReport& report, const ProfilerTrace& trace, const std::string& name) {
  const std::string of = name.empty() ? "" : printable(name) + ": ";
  if (trace.cut_off)
    report.warnings.push_back(
        fmt::format("{}the file ends before its list of events does: {} events were read", of,
                    format_integer(trace.event_count)));
  if (trace.odd_events > 0)
    report.warnings.push_back(fmt::format("{}{} events without a valid time were left out", of,
                                          format_integer(trace.odd_events)));
}

/// Refuses a trace that has nothing to replay or to compare with.
void check_gpu_work(const ProfilerTrace& trace, const std::string& path, const char* purpose) {
  if (trace.events.empty())
    fail_input(printable(path), fmt::format("there is no work of a GPU to {}", purpose));
}

void add_warnings(TraceReport& report, const ReadTrace& one) {
  const ProfilerTrace& trace = one.trace;
  warn_of_file(report, trace, "");
  if (trace.events.empty()) {
    report.warnings.emplace_back(trace.cut_off
                                     ? "the part of it that was read has no work of a GPU"
                                     : "the trace has no work of a GPU: profile with "
                                       "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
    return;
  }
  if (!one.device)
    report.warnings.push_back(fmt::format(
        "no known GPU is named '{}': give it by `traced-gpu`, without it nothing is forecast",
        shown_name(report.traced_gpu)));
  if (!trace.has_shapes)
    report.warnings.emplace_back(
        "no operator states the sizes of its inputs: profile with record_shapes=True");
  constexpr double kWorthTelling = 0.05;
  if (trace.has_shapes && report.unknown_share > kWorthTelling)
    report.warnings.push_back(fmt::format(
        "{:.0f} % of the kernels' time is measured only: operators that are not known, kernels of "
        "graphs, or launches before the trace began",
        100 * report.unknown_share));
}

/// What is the same in traces of two vendors: the work; else name and arguments.
std::string key_of_group(const OperatorGroup& group, const ProfilerTrace& trace) {
  std::string key;
  for (const Kernel& kernel : group.work.kernels) {
    key += fmt::format("{}/{}/{}/{}", type_info(kernel).name, static_cast<int>(kernel.dtype),
                       kernel.flops, kernel.bytes());
    for (const int64_t size : sizes_of(kernel)) key += fmt::format("/{}", size);
  }
  if (!key.empty()) return key;
  if (group.call < 0) return trace.names[group.kernel];
  const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
  return call.name + sizes_of(call) + dtype_of(call);
}

/// For each group of `to`, a group of `from` with the same work; -1: none.
std::vector<int32_t> matched_groups(const ReadTrace& from, const ReadTrace& to) {
  std::map<std::string, int32_t> index;
  for (size_t i = 0; i < from.groups.size(); ++i)
    index.emplace(key_of_group(from.groups[i], from.trace), static_cast<int32_t>(i));
  std::vector<int32_t> matched;
  for (const OperatorGroup& group : to.groups) {
    const auto found = index.find(key_of_group(group, to.trace));
    matched.push_back(found == index.end() ? -1 : found->second);
  }
  return matched;
}

/// Durations of a trace's events if a call of each group takes this time. `even`: the events of a
/// call share it evenly, else as they were measured.
std::vector<int64_t> event_durations(const ReadTrace& one, const std::vector<double>& call_s,
                                     bool even) {
  std::vector<int64_t> durations(one.trace.events.size(), 0);
  for (size_t g = 0; g < one.groups.size(); ++g) {
    const OperatorGroup& group = one.groups[g];
    const double each_ns = call_s[g] * group.calls / static_cast<double>(group.events.size()) * 1e9;
    const double measured_s = group.measured_s();
    const bool evenly = even || !(measured_s > 0);
    const double ratio = evenly ? 1 : call_s[g] / measured_s;
    for (const int32_t i : group.events) {
      const auto measured =
          static_cast<double>(one.trace.events[static_cast<size_t>(i)].duration_ns);
      const double ns =
          std::min(evenly ? each_ns : measured * ratio, static_cast<double>(kLongestTraceNs));
      durations[static_cast<size_t>(i)] = std::llround(ns);
    }
  }
  return durations;
}

/// The span for the values, low and high ends of all times.
Interval span_of_times(const ReadTrace& one, const std::vector<GroupTime>& times,
                       const Interval& sum, bool even, double host_speed,
                       const TraceConstants& constants) {
  std::vector<double> call_s;
  for (const GroupTime& time : times) call_s.push_back(time.seconds);
  // Errors cancel in the sum; the ends of the span are those of all kernels, scaled to that sum's.
  const auto span = [&](double scale) {
    std::vector<double> scaled = call_s;
    for (double& s : scaled) s *= scale;
    return seconds_of(
        replayed_span_ns(one.trace, event_durations(one, scaled, even), host_speed, constants));
  };
  const double value = std::max(sum.value, 1e-12);
  return {span(1), span(sum.low / value), span(sum.high / value)};
}

std::string host_text(const TraceQuery& query) {
  if (!query.host_trace.empty()) return "that of " + printable(query.host_trace);
  if (!std::isfinite(query.host_speed)) return "all launched in time, as from a CUDA graph";
  if (query.host_speed == 1) return "as in the trace";
  return fmt::format("{:.3g} times as fast as in the trace", query.host_speed);
}

/// Adds the trace on another GPU.
void carry(TraceReport& report, const ReadTrace& one, const Forecaster& forecaster,
           const TraceQuery& query) {
  check_gpu_work(one.trace, query.path, "carry to another one");
  if (!one.device)
    throw Error(ErrorKind::kInput,
                "the GPU of the trace must be known to carry it: give it by `traced-gpu`");
  const Device& to = query.gpu->content->device;
  const Predictor& predictor = *forecaster.impl().learned;
  const TraceConstants& constants = predictor.laws().trace;
  CarriedTrace& carried = report.carried.emplace();
  carried.gpu = to.id;
  carried.gpu_name = to.name;
  carried.host = host_text(query);
  const std::vector<GroupTime> there =
      group_times(one.groups, predictor, to, seconds_of(one.span.ns()));
  const std::vector<GroupTime> times =
      carried_times(one.groups, one.times, there, *one.device, to, constants);
  for (size_t i = 0; i < times.size(); ++i) {
    report.operators[i].carried = times[i].seconds;
    if (!(there[i].seconds > 0)) carried.unknown_share += report.operators[i].share;
  }
  if (query.host_trace.empty()) {
    carried.kernels_s = sum_of(one.groups, times);
    carried.span_s =
        span_of_times(one, times, carried.kernels_s, false, query.host_speed, constants);
    return;
  }
  const ReadTrace host = read(forecaster, query.host_trace, query.gpu);
  check_gpu_work(host.trace, query.host_trace, "replay");
  warn_of_file(report, host.trace, query.host_trace);
  const std::vector<int32_t> matched = matched_groups(one, host);
  std::vector<GroupTime> host_times(host.groups.size());
  double unmatched_s = 0, total_s = 0;
  for (size_t i = 0; i < matched.size(); ++i) {
    const double measured_s = host.groups[i].measured_s();
    total_s += measured_s * host.groups[i].calls;
    if (matched[i] >= 0) {
      host_times[i] = times[static_cast<size_t>(matched[i])];
    } else {
      host_times[i].seconds = {measured_s, measured_s, measured_s};
      unmatched_s += measured_s * host.groups[i].calls;
    }
  }
  report.assumptions.push_back(
      fmt::format("{:.1f} % of the kernels' time of {} has the same operator in this trace, the "
                  "rest is as measured there",
                  100 * (1 - unmatched_s / std::max(total_s, 1e-12)), printable(query.host_trace)));
  carried.kernels_s = sum_of(host.groups, host_times);
  carried.span_s =
      span_of_times(host, host_times, carried.kernels_s, true, query.host_speed, constants);
}

TraceReport report_of(const ReadTrace& one, const Forecaster& forecaster, const std::string& path) {
  TraceReport report;
  report.file = printable(path);
  if (const TracedDevice* traced = traced_device(one.trace))
    report.traced_gpu = printable(traced->name);
  const TraceConstants& constants = forecaster.impl().learned->laws().trace;
  double start_s = constants.nvidia_start_s;
  if (one.device) {
    report.gpu = one.device->id;
    report.gpu_name = one.device->name;
    if (one.trace.is_amd) start_s = constants.amd_start_s;
    report.assumptions.emplace_back(
        "kernels of PyTorch; short kernels start as the vendor's profiler states it; the board "
        "holds its power");
  }
  add_times(report, one);
  add_operators(report, one, start_s, constants);
  add_warnings(report, one);
  return report;
}

}  // namespace

TraceReport report_trace(const Forecaster& forecaster, const TraceQuery& query) {
  constexpr double kSlowest = 1e-3;
  if (!(query.host_speed >= kSlowest))
    throw Error(ErrorKind::kInput, "the speed of the host must be at least 0.001");
  const ReadTrace one = read(forecaster, query.path, query.traced);
  TraceReport report = report_of(one, forecaster, query.path);
  if (query.gpu) carry(report, one, forecaster, query);
  return report;
}

TraceReport compare_traces(const Forecaster& forecaster, const std::string& a, const std::string& b,
                           const std::optional<GpuRef>& traced) {
  const ReadTrace first = read(forecaster, a, traced), second = read(forecaster, b, {});
  check_gpu_work(second.trace, b, "compare with");
  TraceReport report = report_of(first, forecaster, a);
  warn_of_file(report, second.trace, b);
  const std::vector<int32_t> matched = matched_groups(second, first);
  CarriedTrace& other = report.carried.emplace();
  if (second.device) {
    other.gpu = second.device->id;
    other.gpu_name = second.device->name;
  } else if (const TracedDevice* device = traced_device(second.trace)) {
    report.warnings.push_back(
        fmt::format("{}: no known GPU is named '{}'", printable(b), shown_name(device->name)));
  }
  other.host = "as measured in " + printable(b);
  double unmatched = 0;
  for (size_t i = 0; i < matched.size(); ++i) {
    if (matched[i] < 0) {
      unmatched += report.operators[i].share;
      continue;
    }
    const double s = second.groups[static_cast<size_t>(matched[i])].measured_s();
    report.operators[i].carried = Interval{s, s, s};
  }
  other.unknown_share = unmatched;
  int64_t total_ns = 0;
  for (const DeviceEvent& event : second.trace.events) total_ns += event.duration_ns;
  const double kernels_s = seconds_of(total_ns), span_s = seconds_of(second.span.ns());
  other.kernels_s = {kernels_s, kernels_s, kernels_s};
  other.span_s = {span_s, span_s, span_s};
  return report;
}

}  // namespace tilecast
