#pragma once

#include <vector>

#include "allocation/problem.h"

namespace tilecast {

/// Jobs with equal columns, weights and demands as one with a count. 10,000 jobs of a hundred types
/// are as few as a hundred this way.
class AlikeJobs {
 public:
  AlikeJobs(const AllocationProblem& problem, const std::vector<double>& demands);

  /// Pairs have two jobs each, and whole jobs no equal shares.
  static bool apply_to(const AllocationProblem& problem);

  Allocation divided(const Allocation& allocation, Divide how) const;

  AllocationProblem merged;
  std::vector<double> demands;

 private:
  void add(const AllocationProblem& problem, size_t job, double demand);

  std::vector<double> count_of_;              ///< by job
  std::vector<std::vector<size_t>> columns_;  ///< by job
  std::vector<std::vector<size_t>> members_;  ///< by merged job
  std::vector<size_t> first_column_;          ///< by merged job
};

}  // namespace tilecast
