#pragma once

// From the work of tables to kernels of embedding bags.

#include <span>

#include "embedding/traffic.h"
#include "ops/kernel.h"
#include "ops/sizes.h"

namespace tilecast {

/// One launch over all tables, one after the other.
struct TablesLaunch {
  std::span<const TableWork> tables;
  EmbeddingBag::Pass pass = EmbeddingBag::Pass::kForward;
  SparseOptimizer optimizer = SparseOptimizer::kSgd;  ///< for kUpdate
  DType dtype = DType::kFp32;
};

/// Throws Error{kInput} if the bytes exceed 64 bits.
Kernel tables_kernel(const TablesLaunch& launch);

/// How often a batch uses the rows of a table, as a list (embedding/reuse.h).
SizeDef reuse_size();
/// The list for `bags` x `pooling` lookups of `table_rows`; empty: not given. Throws Error{kInput}
/// if they contradict each other.
ReuseCounts reuse_of(const GivenSizes& sizes);

}  // namespace tilecast
