// What a trace shows, beside what it should take, and on another GPU.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "profile/carry.h"
#include "profile/collective_calls.h"
#include "profile/memory_use.h"
#include "profile/read_trace.h"
#include "profile/replay.h"
#include "profile/timeline_writer.h"
#include "profile/traced_gpu.h"
#include "scenario/internal.h"
#include "tilecast/error.h"
#include "tilecast/profile.h"

namespace tilecast {
namespace {

/// Whether a call's time is the start of its kernels for the most part. Starts vary by as much as
/// their median (amd_start_s in data/laws/trace.json); intervals hold the errors of the laws alone.
bool is_mostly_start(const OperatorGroup& group, const GroupTime& time) {
  return time.limit == "latency" &&
         std::all_of(group.work.kernels.begin(), group.work.kernels.end(),
                     [](const Kernel& kernel) { return kernel.is<Stream>() || kernel.is<Rows>(); });
}

TracedOperator describe(const OperatorGroup& group, const GroupTime& time, const ReadTrace& one,
                        int64_t total_ns, double least_s, const Reasons& reasons) {
  const ProfilerTrace& trace = one.trace;
  TracedOperator row;
  if (group.kernel >= 0) row.kernel = printable(trace.names[group.kernel]);
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
  } else if (group.collective >= 0) {
    const TracedCollective& call = trace.collectives[static_cast<size_t>(group.collective)];
    row.name = printable(call.name);
    row.sizes = sizes_of(call);
    row.dtype = printable(call.dtype);
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
  const double highest_s = time.seconds.high + (is_mostly_start(group, time) ? least_s : 0);
  row.slow = typical_s > highest_s && typical_s - time.seconds > least_s;
  if (!row.slow) return row;
  row.reason = reasons.of(group, row.ratio);
  row.gain_s = (typical_s - time.seconds) * group.calls;
  return row;
}

void add_operators(TraceReport& report, const ReadTrace& one, double least_s,
                   const TraceConstants& constants) {
  int64_t total_ns = 0;
  for (const DeviceEvent& event : one.trace.events) total_ns += event.duration_ns;
  report.kernels_s = seconds_of(total_ns);
  const Reasons reasons(one.trace, constants);
  for (size_t i = 0; i < one.groups.size(); ++i) {
    TracedOperator row = describe(one.groups[i], one.times[i], one, total_ns, least_s, reasons);
    report.gain_s += row.gain_s;
    if (row.forecast) report.forecast_share += row.share;
    if (row.kind == TracedKind::kUnknown) report.unknown_share += row.share;
    report.operators.push_back(std::move(row));
  }
  if (!one.unmeasured() || !one.device || one.groups.empty()) return;
  report.should_take = sum_of(one.groups, one.times);
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
  report.memory_peak_bytes = one.trace.memory.allocated_bytes;
  report.memory_reserved_bytes = one.trace.memory.reserved_bytes;
  report.kernels = static_cast<int64_t>(one.trace.events.size());
  report.streams = static_cast<int64_t>(streams.size());
}

/// Of a trace that has operators, but no times of a GPU.
void warn_of_recorded(TraceReport& report, const ReadTrace& one) {
  const bool kineto = one.trace.format == TraceFormat::kKineto;
  report.warnings.push_back(fmt::format(
      "nothing was measured on a GPU{}: times are forecasts of the operators, without the host's",
      kineto ? " (activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] does)" : ""));
  if (!one.device)
    report.warnings.emplace_back("the trace names no GPU: give one by `traced-gpu` or `gpu`");
  if (one.unknown.empty()) return;
  int64_t calls = 0;
  std::vector<std::pair<int64_t, std::string>> most;
  for (const auto& [name, count] : one.unknown) {
    calls += count;
    most.emplace_back(-count, name);
  }
  std::sort(most.begin(), most.end());
  constexpr size_t kShown = 3;
  std::string names;
  for (size_t i = 0; i < std::min(kShown, most.size()); ++i)
    names += (i > 0 ? ", " : "") + shown_name(most[i].second);
  report.warnings.push_back(
      fmt::format("calls of operators that are not known are left out, {} in all: {}{}",
                  format_integer(calls), names, most.size() > kShown ? ", ..." : ""));
}

void add_warnings(TraceReport& report, const ReadTrace& one) {
  const ProfilerTrace& trace = one.trace;
  warn_of_file(report.warnings, trace, "");
  if (one.unmeasured()) {
    if (!one.groups.empty()) return warn_of_recorded(report, one);
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
        trace.format == TraceFormat::kNsight
            ? "no NVTX range states sizes of operators: profile under "
              "torch.autograd.profiler.emit_nvtx(record_shapes=True)"
            : "no operator states the sizes of its inputs: profile with record_shapes=True");
  constexpr double kWorthTelling = 0.05;
  if (trace.has_shapes && report.unknown_share > kWorthTelling)
    report.warnings.push_back(fmt::format(
        "{:.0f} % of the kernels' time is measured only: operators that are not known, kernels of "
        "graphs, or launches before the trace began",
        100 * report.unknown_share));
}

/// What was not measured is ordered, and has its share, by its forecast.
void order_recorded(TraceReport& report) {
  const auto total_s = [](const TracedOperator& op) {
    const std::optional<Interval>& time = op.forecast ? op.forecast : op.carried;
    return time ? time->value * op.calls : 0;
  };
  std::stable_sort(report.operators.begin(), report.operators.end(),
                   [&](const auto& a, const auto& b) { return total_s(a) > total_s(b); });
  double sum = 0;
  for (const TracedOperator& op : report.operators) sum += total_s(op);
  if (sum <= 0) return;
  for (TracedOperator& op : report.operators) op.share = total_s(op) / sum;
}

void check_query(const TraceQuery& query) {
  constexpr double kSlowest = 1e-3;
  if (!(query.host_speed >= kSlowest))
    throw Error(ErrorKind::kInput, "the speed of the host must be at least 0.001");
}

/// What tensors had of the memory here may be more than there is on the other GPU.
void warn_of_memory(TraceReport& report, const TraceQuery& query) {
  if (!query.gpu) return;
  const int64_t there = query.gpu->content->device.memory_bytes;
  if (report.memory_peak_bytes > there)
    report.warnings.push_back(fmt::format(
        "the tensors of the trace had up to {}, more than the {} of {}",
        format_bytes(report.memory_peak_bytes), format_bytes(there), report.carried->gpu_name));
}

/// What a format leaves open.
void add_assumptions(TraceReport& report, const ProfilerTrace& trace) {
  if (trace.typed_by_kernels)
    report.assumptions.emplace_back(
        "the file states no dtypes: those of operators are what their kernels' names tell; "
        "tensors are stored row by row");
  if (trace.format == TraceFormat::kNsight ||
      (trace.format == TraceFormat::kChakra && !trace.events.empty()))
    report.warnings.push_back(
        fmt::format("{} are read by their published schema: not tried on a real file",
                    trace.format == TraceFormat::kNsight ? "exports of Nsight Systems"
                                                         : "execution traces with kernels"));
}

TraceReport report_of(const ReadTrace& one, const Forecaster& forecaster, const std::string& path) {
  TraceReport report;
  report.file = printable(path);
  if (const TracedDevice* traced = traced_device(one.trace))
    report.traced_gpu = printable(traced->name);
  const TraceConstants& constants = forecaster.impl().learned->laws().trace;
  double start_s = constants.nvidia_start_s;
  add_assumptions(report, one.trace);
  if (one.device) {
    report.gpu = one.device->id;
    report.gpu_name = one.device->name;
    if (one.trace.is_amd) start_s = constants.amd_start_s;
    report.assumptions.emplace_back(
        "kernels of PyTorch; short kernels start as the vendor's profiler states it; the board "
        "holds its power");
  }
  add_times(report, one);
  report.memory = memory_use(one.trace, one.groups);
  if (!report.memory && !one.trace.memory_events.empty())
    report.warnings.emplace_back(
        "events of memory were left out: together they take more than any device has");
  if (report.memory)
    report.assumptions.emplace_back(
        "memory: what was held before the trace, and who keeps a tensor how long, are as measured; "
        "sizes of results, weights and the allocator are compared");
  add_operators(report, one, start_s, constants);
  add_warnings(report, one);
  return report;
}

}  // namespace

TraceReport report_trace(const Forecaster& forecaster, const TraceQuery& query) {
  check_query(query);
  const ReadTrace one = read_trace(forecaster, query.path, query.traced);
  TraceReport report = report_of(one, forecaster, query.path);
  if (!asks_to_carry(query)) {
    if (one.unmeasured()) order_recorded(report);
    return report;
  }
  Carried carried = carry(one, forecaster, query);
  for (size_t i = 0; i < carried.times.size(); ++i)
    report.operators[i].carried = carried.times[i].seconds;
  report.carried = std::move(carried.totals);
  for (std::string& text : carried.assumptions) report.assumptions.push_back(std::move(text));
  for (std::string& text : carried.warnings) report.warnings.push_back(std::move(text));
  warn_of_memory(report, query);
  if (one.unmeasured()) order_recorded(report);
  return report;
}

TraceReport compare_traces(const Forecaster& forecaster, const std::string& a, const std::string& b,
                           const std::optional<GpuRef>& traced) {
  const ReadTrace first = read_trace(forecaster, a, traced), second = read_trace(forecaster, b, {});
  check_gpu_work(second.trace, b, "compare with");
  TraceReport report = report_of(first, forecaster, a);
  warn_of_file(report.warnings, second.trace, b);
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

TracedTimeline timeline_of_trace(const Forecaster& forecaster, const TraceQuery& query) {
  check_query(query);
  const ReadTrace one = read_trace(forecaster, query.path, query.traced);
  check_gpu_work(one.trace, query.path, "show");
  const TracedDevice* traced = traced_device(one.trace);
  const std::string here = one.device          ? one.device->name
                           : traced != nullptr ? printable(traced->name)
                                               : "the trace's GPU";
  TimelineWriter writer;
  writer.add_measured(one, "measured on " + here);
  if (asks_to_carry(query)) {
    const Carried carried = carry(one, forecaster, query);
    const ReadTrace& shown = carried.host ? *carried.host : one;
    writer.add_replayed(shown,
                        replayed(shown.trace, carried.durations_ns, query.host_speed,
                                 forecaster.impl().learned->laws().trace),
                        "carried to " + carried.totals.gpu_name);
  }
  return {writer.finish()};
}

}  // namespace tilecast
