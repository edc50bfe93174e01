#pragma once

// One candidate of a plan of serving, simulated.

#include <optional>

#include "scenario/generation/served_layout.h"
#include "tilecast/search.h"

namespace tilecast {

/// The limits of a plan, beyond which a simulation may stop.
TimeLimits time_limits(const ServingPlan& plan);

/// Forgets what was simulated; the memory stays.
void forget_results(ServingCandidate& candidate);

/// Fills in the memory of a candidate and, if it fits, what its clients see. `layout`: of
/// `request_of` the candidate. Requests that are sure to miss `stop_beyond` prune it. Returns the
/// most requests in flight, of all replicas that are simulated together; 0: not simulated. Throws
/// Error if the servers do not start.
int64_t simulate_candidate(const ServingPlan& plan, ServingCandidate& candidate,
                           const ServedLayout& layout,
                           const std::optional<TimeLimits>& stop_beyond = {});

}  // namespace tilecast
