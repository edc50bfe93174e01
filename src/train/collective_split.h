#pragma once

#include <vector>

#include "tilecast/learn.h"
#include "train/collective_fit.h"

namespace tilecast {

/// Sets the spreads of `weights`, and returns the errors of rows that the fit did not see: every
/// third size in turn, each number of ranks (or nodes) in turn, each GPU, and each generation of
/// links with all its GPUs. A left-out GPU also loses the start and step times of its cluster file,
/// which were measured on it: it gets the curves of an unknown one.
std::vector<CollectiveError> judge_collectives(const std::vector<CollectiveRow>& rows,
                                               CollectiveWeights& weights);

}  // namespace tilecast
