#pragma once

// Jobs that run whole, one after another, each on GPUs of one kind.

#include "allocation/problem.h"

namespace tilecast {

/// Objective: seconds until the last job ends.
Allocation queue_for_makespan(const AllocationProblem& problem);

enum class ThenLeast { kCost, kTime };
/// Objective: the weights of the jobs that meet their deadline (kTime), or the cost (kCost).
Allocation queue_for_deadlines(const AllocationProblem& problem, ThenLeast then);

}  // namespace tilecast
