#pragma once

// A trace that was read, with its operators and their forecasts on its GPU.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "profile/operators.h"
#include "profile/timeline.h"
#include "profile/trace.h"
#include "tilecast/forecast.h"

namespace tilecast {

struct ReadTrace {
  ProfilerTrace trace;
  /// There is no work of a GPU: the groups are operators that were recorded, with forecasts alone.
  bool unmeasured() const { return trace.events.empty(); }
  TraceSpan span;
  std::vector<OperatorGroup> groups;
  std::optional<Device> device;
  std::vector<GroupTime> times;            ///< on `device`
  std::map<std::string, int64_t> unknown;  ///< of RecordedOperators
};

/// Reads a trace. `gpu`: that it was made on; not given: the trace names it. Throws as
/// `read_profiler_trace`.
ReadTrace read_trace(const Forecaster& forecaster, const std::string& path,
                     const std::optional<GpuRef>& gpu);

inline double seconds_of(int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// Adds what a file lacks; `name` stands before it, where it is not the report's trace.
void warn_of_file(std::vector<std::string>& warnings, const ProfilerTrace& trace,
                  const std::string& name);

/// Refuses a trace that has nothing to replay or to compare with. Throws Error{kInput}.
void check_gpu_work(const ProfilerTrace& trace, const std::string& path, const char* purpose);

/// For each group of `to`, a group of `from` with the same work; -1: none.
std::vector<int32_t> matched_groups(const ReadTrace& from, const ReadTrace& to);

/// The median time of a call, by its operators of the trace.
double median_call_s(const OperatorGroup& group, const ProfilerTrace& trace);

}  // namespace tilecast
