#pragma once

#include "collectives/collective.h"
#include "predict/cost_models.h"

namespace tilecast {

/// Time of a collective between the ranks of one node, on the device's bundled cluster (node_of).
/// Throws Error{kUnsupported} for a device without links.
CollectiveTime collective_time_of(const Kernel& kernel, const Device& device,
                                  const Conditions& conditions);

/// The cost model of collectives: the law and the curves of src/collectives.
void estimate_collectives(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
