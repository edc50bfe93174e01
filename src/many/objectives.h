#pragma once

// The objectives of allocations: how each is reached, and what it needs.

#include <optional>

#include "allocation/problem.h"
#include "tilecast/allocate.h"

namespace tilecast {

/// In the order of AllocationObjective.
struct ObjectiveDef {
  Allocation (*solve)(const AllocationProblem&);
  bool needs_steps;                  ///< of every job
  bool needs_prices;                 ///< of every kind
  bool needs_deadlines;              ///< of a job at least
  bool queues;                       ///< whole jobs run one after another, else all at once
  std::optional<Divide> alike = {};  ///< of jobs that differ in steps only; nullopt: steps matter
};

const ObjectiveDef& objective_def(AllocationObjective objective);

/// Throws Error{kInput} for prices or deadlines that the objective needs and the query lacks, and
/// Error{kUnsupported} for jobs that it cannot let share.
void check_objective(const AllocationQuery& query, bool has_deadlines);

}  // namespace tilecast
