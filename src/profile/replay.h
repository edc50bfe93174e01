#pragma once

// The events of a trace once more, with other durations and another pace of the host.

#include <cstdint>
#include <vector>

#include "laws/trace.h"
#include "profile/trace.h"

namespace tilecast {

/// The span, in ns, if the trace's events take these durations, each at most kLongestTraceNs.
/// `host_speed`: over that of the trace, above 0; infinity: everything is launched at once. Kept
/// are: the order of each stream and the gaps within it, the host's order and times between its
/// calls, its waits for the GPU, and that an event begins after one of another stream, where the
/// trace shows it.
int64_t replayed_span_ns(const ProfilerTrace& trace, const std::vector<int64_t>& durations_ns,
                         double host_speed, const TraceConstants& constants);

}  // namespace tilecast
