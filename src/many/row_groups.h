#pragma once

// Which rows of a table share work.

#include <cstdint>
#include <vector>

#include "many/distinct_rows.h"
#include "tilecast/search.h"

namespace tilecast {

/// Rows of one group are forecast by one thread.
struct JobGroup {
  std::vector<size_t> kinds;     ///< indices of DistinctRows::first, by batch
  std::vector<int64_t> batches;  ///< of them, rising
};

/// The distinct rows, those together that are alike but for device and batch: their passes are
/// built once for a GPU's batch, and mostly once for many batches.
std::vector<JobGroup> group_rows(const std::vector<OptionColumn>& columns,
                                 const DistinctRows& distinct);

}  // namespace tilecast
