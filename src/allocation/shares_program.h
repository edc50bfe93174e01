#pragma once

// Rows that programs of shares have in common.

#include <algorithm>
#include <vector>

#include "allocation/linear_program.h"
#include "allocation/problem.h"

namespace tilecast {

/// Smaller shares are the solver's rounding.
inline constexpr double kLeastShare = 1e-7;

inline LinearProgram::Values whole_if(bool whole) {
  return whole ? LinearProgram::Values::kWhole : LinearProgram::Values::kAny;
}

/// How far from the best a solution with whole numbers may be. Up to some thousand columns Cbc
/// proves the optimum within seconds; 100,000 columns take minutes without a gap.
inline double gap_of(const AllocationProblem& problem) {
  constexpr size_t kExact = 2000;
  return problem.columns.size() <= kExact ? 0 : 0.005;
}

/// With weights as parts of the heaviest an objective is near 1.
inline double heaviest_weight(const AllocationProblem& problem) {
  double heaviest = 0;
  for (const AllocationProblem::Job& job : problem.jobs) heaviest = std::max(heaviest, job.weight);
  return heaviest > 0 ? heaviest : 1;
}

/// Every program has a solution, though jobs may wait: none is found where the solver gives up.
Allocation require_found(Allocation allocation);

/// A job runs at most all the time, a kind's GPUs are at most those of the pool.
class SharesRows {
 public:
  SharesRows(const AllocationProblem& problem, LinearProgram& program);
  void entries(const AllocationProblem::Column& column,
               std::vector<LinearProgram::Entry>& entries) const;

 private:
  std::vector<int> jobs_, kinds_;
};

}  // namespace tilecast
