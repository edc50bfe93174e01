#pragma once

// A pool over time, as jobs arrive.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "allocation/problem.h"

namespace tilecast {

struct ArrivingJob {
  size_t type = 0;  ///< jobs of a type have the same columns
  double arrival_s = 0, steps = 0, deadline_s = kNoEnd, weight = 1;
};

struct PoolOverTime {
  std::vector<AllocationProblem::Kind> kinds;
  std::vector<ArrivingJob> jobs;  ///< by time of arrival
  /// The columns of jobs of these types; a column's jobs are indices into `types`.
  std::function<std::vector<AllocationProblem::Column>(const std::vector<size_t>& types)> columns;
};

struct SimulatedPool {
  struct Span {
    size_t job, kind;
    double begin_s, end_s, gpus;  ///< mean number in the span
  };
  std::vector<double> ends_s;  ///< by job; kNoEnd: it has no end
  std::vector<double> gpu_s;   ///< used, by kind
  std::vector<Span> spans;
  double makespan_s = 0;
  size_t divisions = 0;  ///< how often time was divided by an objective
  size_t unproven = 0;   ///< of these, those of which the solver did not prove that they are best
};

enum class Sees { kKinds, kPoolAlone };

/// First come, first served: a job takes the fewest GPUs that it may, of the kind with the most
/// free ones, until it ends; those behind the first one that does not fit wait.
SimulatedPool simulate_first_come(const PoolOverTime& pool);

/// At each arrival and end, time is divided anew by an objective; jobs move at no cost. `alike`:
/// how jobs of a type and weight divide what they get together, where the objective takes no
/// account of steps and no two jobs share a GPU; nullopt: each is a job of its own. Throws
/// Error{kUnsupported} if the solver finds no allocation.
SimulatedPool simulate_objective(const PoolOverTime& pool,
                                 Allocation (*objective)(const AllocationProblem&), Sees sees,
                                 std::optional<Divide> alike = std::nullopt);

}  // namespace tilecast
