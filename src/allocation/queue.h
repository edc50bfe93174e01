#pragma once

// Jobs that run whole, one after another, each on GPUs of one kind.

#include <vector>

#include "allocation/problem.h"

namespace tilecast {

/// A column that runs for some time.
struct TimedWork {
  size_t column;
  double seconds;
};
/// Runs work in this order, each as soon as its jobs and enough GPUs of its kind are free.
std::vector<TimedColumn> run_in_order(const AllocationProblem& problem,
                                      const std::vector<TimedWork>& order, double begin_s);

/// Objective: seconds until the last job ends.
Allocation queue_for_makespan(const AllocationProblem& problem);

enum class ThenLeast { kCost, kTime };
/// Objective: the weights of the jobs that meet their deadline (kTime), or the cost (kCost).
Allocation queue_for_deadlines(const AllocationProblem& problem, ThenLeast then);

}  // namespace tilecast
