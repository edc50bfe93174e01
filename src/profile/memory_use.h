#pragma once

// Memory of a trace: what its events state, and what Tilecast's models say of the same operators.
// Who keeps a tensor, and for how long, is what was measured: a trace does not say which operators
// use it later. Compared are sizes of results, weights, and the allocator.

#include <optional>
#include <vector>

#include "profile/operators.h"
#include "profile/trace.h"
#include "tilecast/profile.h"

namespace tilecast {

/// nullopt: the trace has no events of memory, or some that contradict each other (more memory than
/// any device has). Of the GPU that had most in use, else of the host.
std::optional<TracedMemoryUse> memory_use(const ProfilerTrace& trace,
                                          const std::vector<OperatorGroup>& groups);

}  // namespace tilecast
