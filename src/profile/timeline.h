#pragma once

// When the GPU of a trace was busy, and why it was not.

#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/trace.h"
#include "tilecast/profile.h"

namespace tilecast {

/// From the first launch to the end of the last kernel.
struct TraceSpan {
  int64_t start_ns = 0, end_ns = 0;
  int64_t ns() const { return end_ns - start_ns; }
};
TraceSpan span_of(const ProfilerTrace& trace);

/// What ran when, in ns.
struct TracedBusy {
  int64_t busy_ns = 0;                 ///< any event
  int64_t exposed_collectives_ns = 0;  ///< collectives, and nothing else
  std::vector<TracedIdle> idle;        ///< the largest part first
};
TracedBusy busy_time(const ProfilerTrace& trace, const TraceSpan& span);

std::vector<TracedStep> step_times(const ProfilerTrace& trace);

/// Whether a kernel of this name is communication between GPUs, by NCCL or RCCL.
bool is_collective_kernel(std::string_view name);

/// Whether a call of the runtime may wait for the GPU.
bool may_wait(std::string_view call);

}  // namespace tilecast
