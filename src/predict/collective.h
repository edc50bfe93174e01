#pragma once

#include "collectives/collective.h"
#include "predict/cost_models.h"

namespace tilecast {

/// Which collective the kernel's operator is.
CollectiveKind collective_kind(const Kernel& kernel);
/// Bytes of the whole buffer, which an all-gather writes and a reduce-scatter reads.
int64_t collective_bytes(const Kernel& kernel);

/// Time of a collective between the ranks of one node, on the device's bundled cluster (node_of).
/// Throws Error{kUnsupported} for a device without links.
CollectiveTime collective_time_of(const Kernel& kernel, const Device& device,
                                  const Conditions& conditions);

/// The cost model of collectives: the law and the curves of src/collectives.
void estimate_collectives(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
