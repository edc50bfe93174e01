#include "profile/read_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#include "profile/collective_calls.h"
#include "profile/sqlite_file.h"
#include "profile/traced_gpu.h"
#include "scenario/internal.h"
#include "tilecast/profile.h"

namespace tilecast {
namespace {

/// What is the same in traces of two vendors: the work; else name and arguments.
std::string key_of_group(const OperatorGroup& group, const ProfilerTrace& trace) {
  std::string key;
  for (const Kernel& kernel : group.work.kernels) {
    key += fmt::format("{}/{}/{}/{}", type_info(kernel).name, static_cast<int>(kernel.dtype),
                       kernel.flops, kernel.bytes());
    for (const int64_t size : sizes_of(kernel)) key += fmt::format("/{}", size);
  }
  if (!key.empty()) return key;
  if (group.collective >= 0) {
    const TracedCollective& one = trace.collectives[static_cast<size_t>(group.collective)];
    return one.name + "/" + one.dtype + "/" + sizes_of(one);
  }
  if (group.call < 0) return trace.names[group.kernel];
  const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
  return call.name + sizes_of(call) + dtype_of(call);
}

}  // namespace

ReadTrace read_trace(const Forecaster& forecaster, const std::string& path,
                     const std::optional<GpuRef>& gpu) {
  ReadTrace one;
  one.trace = read_profiler_trace(path);
  one.span = span_of(one.trace);
  if (one.unmeasured()) {
    RecordedOperators recorded = recorded_operators(one.trace);
    one.groups = std::move(recorded.groups);
    one.unknown = std::move(recorded.unknown);
  } else {
    one.groups = operator_groups(one.trace);
  }
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

void warn_of_file(std::vector<std::string>& warnings, const ProfilerTrace& trace,
                  const std::string& name) {
  const std::string of = name.empty() ? "" : printable(name) + ": ";
  if (trace.cut_off)
    warnings.push_back(
        fmt::format("{}the file ends before its list of events does: {} events were read", of,
                    format_integer(trace.event_count)));
  if (trace.odd_events > 0)
    warnings.push_back(fmt::format("{}{} {} were left out", of, format_integer(trace.odd_events),
                                   trace.format == TraceFormat::kChakra
                                       ? "nodes without a valid id or time"
                                       : "events without a valid time"));
}

void check_gpu_work(const ProfilerTrace& trace, const std::string& path, const char* purpose) {
  if (trace.events.empty())
    fail_input(printable(path), fmt::format("there is no work of a GPU to {}", purpose));
}

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

bool is_profiler_trace(const std::string& path) {
  if (!is_file(path)) return false;
  if (path.ends_with(".json.gz") || path.ends_with(".nsys-rep")) return true;
  const bool sqlite = path.ends_with(".sqlite") || path.ends_with(".db");
  if (!sqlite && !path.ends_with(".json")) return false;
  constexpr uint64_t kStart = 4096;
  const std::string start = read_file_start(path, kStart);
  if (sqlite) return is_sqlite(start);
  const size_t schema = start.find("\"schema\"");
  if (schema != std::string::npos && start.find("-chakra", schema) != std::string::npos)
    return true;
  return start.find("\"schemaVersion\"") != std::string::npos ||
         start.find("\"traceEvents\"") != std::string::npos;
}

}  // namespace tilecast
