#include "allocation/simulation.h"

#include <gtest/gtest.h>

#include "test_support.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A pool with one GPU, on which each job does a step in a second.
PoolOverTime one_gpu(std::vector<ArrivingJob> jobs) {
  return {
      .kinds = {{1, 0}}, .jobs = std::move(jobs), .columns = [](const std::vector<size_t>& types) {
        std::vector<AllocationProblem::Column> columns;
        for (size_t i = 0; i < types.size(); ++i) columns.push_back({{{i, 1}}, {{0, 1}}});
        return columns;
      }};
}

/// The first job has the GPU alone.
Allocation first_job(const AllocationProblem&) {
  return {.feasible = true, .placements = {{.column = 0, .share = 1}}};
}

TEST(SimulatedObjective, EndsWhereTimeHasFewDigits) {
  // At 1.7e9 a number of seconds has no digits below 2e-7, at 1e18 none below 128.
  for (const double start : {0.0, 1.7e9, 1e18}) {
    const PoolOverTime pool = one_gpu({{.arrival_s = start, .steps = 1.0 / 3},
                                       {.arrival_s = start + 1, .steps = 1.0 / 7},
                                       {.arrival_s = start + 1, .steps = 1.0 / 11}});
    const SimulatedPool simulated = simulate_objective(pool, first_job, Sees::kKinds);
    for (const double end_s : simulated.ends_s) {
      EXPECT_GE(end_s, start);
      EXPECT_LT(end_s, start + 1000);
    }
  }
}

TEST(SimulatedObjective, ThatHasNoAllocationIsAnError) {
  const auto infeasible = [](const AllocationProblem&) { return Allocation{}; };
  EXPECT_ERROR(simulate_objective(one_gpu({{.steps = 1}}), infeasible, Sees::kKinds), kUnsupported,
               "simulating a cluster: at 0 s the solver finds no allocation of 1 jobs");
}

TEST(SimulatedObjective, CountsWhatTheSolverDidNotProve) {
  const auto unproven = [](const AllocationProblem& problem) {
    Allocation allocation = first_job(problem);
    allocation.proven = problem.jobs.size() > 1;
    return allocation;
  };
  const SimulatedPool simulated =
      simulate_objective(one_gpu({{.steps = 1}, {.steps = 2}}), unproven, Sees::kKinds);
  EXPECT_EQ(simulated.divisions, 2u);
  EXPECT_EQ(simulated.unproven, 1u);
}

TEST(SimulatedObjective, LeavesJobsThatNeverRunWithoutAnEnd) {
  const auto nobody = [](const AllocationProblem&) {
    return Allocation{.feasible = true, .placements = {}};
  };
  const SimulatedPool simulated = simulate_objective(one_gpu({{.steps = 1}}), nobody, Sees::kKinds);
  EXPECT_EQ(simulated.ends_s, (std::vector<double>{kNoEnd}));
  EXPECT_EQ(simulated.makespan_s, 0);
}

TEST(SimulatedObjective, ThatStandsStillIsAnError) {
  const auto no_time = [](const AllocationProblem&) {
    return Allocation{.feasible = true, .placements = {{.column = 0, .share = 1, .end_s = 0}}};
  };
  EXPECT_ERROR(simulate_objective(one_gpu({{.steps = 1}}), no_time, Sees::kKinds), kInternal,
               "no time passes at 0 s, and none of 1 jobs ends");
}

}  // namespace
}  // namespace tilecast
