#pragma once

// The events of a trace once more, with other durations and another pace of the host.

#include <cstdint>
#include <vector>

#include "laws/trace.h"
#include "profile/trace.h"

namespace tilecast {

/// When events and calls run in a replay, in ns; a call of the host lasts to its end.
struct ReplayedTrace {
  std::vector<int64_t> begin_ns, end_ns;            ///< of ProfilerTrace::events
  std::vector<int64_t> call_begin_ns, call_end_ns;  ///< of ProfilerTrace::runtime
  int64_t start_ns = 0;                             ///< of the first launch or event
  int64_t span_ns = 0;
};

/// The trace's events with these durations, each at most kLongestTraceNs. `host_speed`: over that
/// of the trace, above 0; infinity: everything is launched at once. Kept are: the order of each
/// stream and the gaps within it, the host's order and times between its calls, its waits for the
/// GPU, and that an event begins after one of another stream, where the trace shows it.
ReplayedTrace replayed(const ProfilerTrace& trace, const std::vector<int64_t>& durations_ns,
                       double host_speed, const TraceConstants& constants);

/// Its span alone.
int64_t replayed_span_ns(const ProfilerTrace& trace, const std::vector<int64_t>& durations_ns,
                         double host_speed, const TraceConstants& constants);

}  // namespace tilecast
