#pragma once

#include <vector>

#include "placement/costs.h"
#include "scenario/timed_pass.h"

namespace tilecast {

/// The kernels of the tables on one rank.
struct TableKernels {
  std::vector<Kernel> kernels;  ///< forward; sort and update
  std::vector<KernelTime> times;
  double forward_s = 0, backward_s = 0;
};

/// One launch of each kernel over all parts on the rank, and what replicated tables add.
TableKernels table_kernels(const PlacementSetup& placing, const ShardProblem& problem,
                           const TablePlacement& placement, size_t rank, const TimingSetup& timing);

}  // namespace tilecast
