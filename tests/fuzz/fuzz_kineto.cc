// A trace of a profiler (JSON of Kineto or Chakra, SQLite of Nsight Systems) of any content gives
// events and their work, or an Error that is not a bug.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "laws/constants.h"
#include "profile/memory_use.h"
#include "profile/operators.h"
#include "profile/replay.h"
#include "profile/timeline.h"
#include "profile/trace.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tilecast::TraceConstants& constants = tilecast::bundled_laws().trace;
  try {
    const tilecast::ProfilerTrace trace =
        tilecast::parse_profiler_trace({reinterpret_cast<const char*>(data), size}, "trace.json");
    const tilecast::Reasons reasons(trace, constants);
    for (const tilecast::OperatorGroup& group : tilecast::operator_groups(trace)) {
      if (group.events.empty() || !(group.calls > 0)) std::abort();
      for (const tilecast::Kernel& kernel : group.work.kernels)
        if (kernel.bytes() < 0 || kernel.flops < 0) std::abort();
      if (group.call >= 0 && !group.work.kernels.empty()) static_cast<void>(reasons.of(group, 2));
    }
    for (const tilecast::OperatorGroup& group : tilecast::recorded_operators(trace).groups)
      if (!(group.calls > 0) || group.work.kernels.empty()) std::abort();
    tilecast::memory_use(trace, tilecast::operator_groups(trace));
    tilecast::busy_time(trace, tilecast::span_of(trace));
    tilecast::step_times(trace);
    std::vector<int64_t> durations;
    for (const tilecast::DeviceEvent& event : trace.events)
      durations.push_back(event.duration_ns / 2);
    tilecast::replayed_span_ns(trace, durations, 1, constants);
    tilecast::replayed_span_ns(trace, durations, 1e-3, constants);
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
    // Messages hold nothing that acts on a terminal.
    if (tilecast::printable_lines(error.what()) != error.what()) std::abort();
  }
  return 0;
}
