#pragma once

#include "scenario/generation/served_layout.h"
#include "tilecast/search.h"

namespace tilecast {

/// The candidate with the fewest servers of a layout that keep the limits under the load of the
/// plan, which is given for all of them together. `unit`: the smallest number of its replicas and
/// prefill workers; others are multiples of it. If no number keeps the limits, that of the most.
ServingCandidate fewest_servers(const Forecaster& forecaster, const ModelRef& model,
                                const GpuRef& gpu, const ServingPlan& plan,
                                const ServingCandidate& unit, KnownServer& known);

}  // namespace tilecast
