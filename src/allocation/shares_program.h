#pragma once

// The linear program of shares of time: a variable for each column and, last, the least of all
// jobs' speed / demand. A job runs at most all the time, a kind's GPUs are at most those of the
// pool.

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

/// What objectives are counted in, so that they are near 1; of a part of the jobs as of all.
struct SharesUnits {
  double least = 1;   ///< of the least speed / demand
  double weight = 1;  ///< of weights
};
SharesUnits units_of(const AllocationProblem& problem, const std::vector<double>& demands);

class SharesProgram {
 public:
  /// Jobs without a demand are not asked for the least. `demands` may be empty.
  SharesProgram(const AllocationProblem& problem, const std::vector<double>& demands,
                const SharesUnits& units);

  LinearProgram program;
  std::vector<int> job_rows, kind_rows;
  std::vector<int> demand_rows;    ///< by job; -1: none
  std::vector<double> of_demand;   ///< by column: of its first job, in that job's row
  std::vector<double> throughput;  ///< an objective
  std::vector<double> least;       ///< an objective
};

/// The basis in which each job has what is best for itself at these prices of time on GPUs, in
/// the program's units: columns of one job only. `objective` is one of the program's.
LinearProgram::Basis basis_at_prices(const AllocationProblem& problem, const SharesProgram& shares,
                                     const std::vector<double>& objective,
                                     const PoolPrices& prices);

/// The basis of the least speed / demand. Where no kind is short, one job on its fastest GPUs
/// decides how high that is; the others have what is best at the prices of the throughput, `then`.
LinearProgram::Basis basis_of_least(const AllocationProblem& problem, const SharesProgram& shares,
                                    const PoolPrices& prices, const PoolPrices& then);

}  // namespace tilecast
