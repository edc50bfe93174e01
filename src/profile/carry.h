#pragma once

// A trace on another GPU, or with another batch or dtype.

#include <optional>
#include <string>
#include <vector>

#include "profile/read_trace.h"
#include "tilecast/profile.h"

namespace tilecast {

struct Carried {
  CarriedTrace totals;
  std::vector<GroupTime> times;  ///< by group of the trace: a call there
  std::vector<std::string> assumptions, warnings;
  /// The trace whose events are replayed, if it is another one.
  std::optional<ReadTrace> host;
  std::vector<int64_t> durations_ns;  ///< of the events that are replayed
};

/// Whether a question asks for more than what is in the trace.
bool asks_to_carry(const TraceQuery& query);

/// Throws as `report_trace`.
Carried carry(const ReadTrace& one, const Forecaster& forecaster, const TraceQuery& query);

}  // namespace tilecast
