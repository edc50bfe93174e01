#pragma once

// The events of a trace once more, with other durations and another pace of the host.

#include <cstdint>
#include <vector>

#include "profile/trace.h"

namespace tilecast {

struct ReplayOptions {
  double host_speed = 1;  ///< over that of the trace; infinity: everything is launched at once
  int64_t launch_ns = 0;  ///< from a launch to the start on an idle stream, where a trace has none
};

/// The span, in ns, if the trace's events take these durations. Kept are: the order of each stream
/// and the gaps within it, the host's order and times between its calls, its waits for the GPU,
/// and that an event begins after one of another stream, where the trace shows it.
int64_t replayed_span_ns(const ProfilerTrace& trace, const std::vector<int64_t>& durations_ns,
                         const ReplayOptions& options);

}  // namespace tilecast
