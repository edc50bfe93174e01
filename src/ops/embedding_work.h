#pragma once

// From the work of tables to kernels of embedding bags.

#include <span>

#include "embedding/traffic.h"
#include "ops/kernel.h"

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

/// The lookups of a table whose rows are equally popular, or whose popularity follows a power law
/// with an exponent of `skew_percent` / 100.
TableAccess skewed_access(double rows, double lookups, int64_t skew_percent);

}  // namespace tilecast
