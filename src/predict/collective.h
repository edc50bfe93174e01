#pragma once

#include "predict/cost_models.h"

namespace tilecast {

/// Time of an all-reduce over the ranks of one node: start-up plus the traffic of a ring, 2 (n - 1)
/// / n times the bytes, over the fastest link of the data sheet. A first law: no algorithm choice,
/// no topology. Start-up: 4 us + 1 us a rank, what NCCL 2.27 takes for 512 bytes on 2, 4 and 8 H100
/// (6, 8, 11 us; aiconfigurator's nccl table). Throws Error{kUnsupported} for a device without
/// links.
double all_reduce_s(const Kernel& kernel, const Device& device);

/// The cost model of collectives.
void estimate_all_reduce(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
