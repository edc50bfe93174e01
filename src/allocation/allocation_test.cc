#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <numeric>
#include <optional>

#include "allocation/linear_program.h"
#include "allocation/problem.h"
#include "allocation/queue.h"
#include "allocation/quiet_output.h"
#include "allocation/shares_program.h"
#include "allocation/simulation.h"
#include "base/rng.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;
using Job = AllocationProblem::Job;

/// Of Cbc's feasibility and of the values that a second objective keeps.
constexpr double kTolerance = 2e-6;

struct Inequality {
  std::vector<double> factors;
  double most;  ///< Σ factor · x <= most
};

/// The solution of a square system; nullopt: it has none, or several.
std::optional<std::vector<double>> solved(std::vector<std::vector<double>> rows) {
  const size_t n = rows.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row)
      if (std::abs(rows[row][column]) > std::abs(rows[pivot][column])) pivot = row;
    if (std::abs(rows[pivot][column]) < 1e-9) return std::nullopt;
    std::swap(rows[pivot], rows[column]);
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = rows[row][column] / rows[column][column];
      for (size_t i = column; i <= n; ++i) rows[row][i] -= factor * rows[column][i];
    }
  }
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = rows[i][n] / rows[i][i];
  return x;
}

/// The highest value of an objective over all x >= 0 that meet the inequalities: at one of the
/// corners, each of which is the solution of as many equalities as there are variables.
double best_corner(const std::vector<double>& objective, std::vector<Inequality> rows) {
  const size_t n = objective.size();
  for (size_t i = 0; i < n; ++i) {
    Inequality positive{std::vector<double>(n), 0};
    positive.factors[i] = -1;
    rows.push_back(positive);
  }
  double best = -kNoEnd;
  std::vector<bool> chosen(rows.size());
  std::fill(chosen.end() - static_cast<std::ptrdiff_t>(n), chosen.end(), true);
  do {
    std::vector<std::vector<double>> system;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (!chosen[row]) continue;
      system.push_back(rows[row].factors);
      system.back().push_back(rows[row].most);
    }
    const auto x = solved(system);
    if (!x) continue;
    const bool feasible = std::all_of(rows.begin(), rows.end(), [&](const Inequality& row) {
      return std::inner_product(x->begin(), x->end(), row.factors.begin(), 0.0) <= row.most + 1e-9;
    });
    if (feasible)
      best = std::max(best, std::inner_product(x->begin(), x->end(), objective.begin(), 0.0));
  } while (std::next_permutation(chosen.begin(), chosen.end()));
  return best;
}

enum class Pairs { kNone, kAll };

/// Jobs whose speed alone is at least twice as high on one kind as on another; some do not fit a
/// kind.
AllocationProblem random_problem(Rng& rng, size_t jobs, size_t kinds, Pairs pairs) {
  AllocationProblem problem;
  for (size_t k = 0; k < kinds; ++k)
    problem.kinds.push_back({static_cast<double>(1 + rng.below(3)), 1e-3 * (0.2 + rng.uniform())});
  for (size_t j = 0; j < jobs; ++j)
    problem.jobs.push_back({.weight = 0.5 + rng.uniform(), .steps = 100 * (1 + 9 * rng.uniform())});
  std::vector<std::vector<double>> speeds(jobs, std::vector<double>(kinds));
  for (size_t j = 0; j < jobs; ++j) {
    const double size = std::exp2(4 * rng.uniform());
    for (size_t k = 0; k < kinds; ++k) {
      if (k > 0 && rng.below(5) == 0) continue;
      speeds[j][k] = size * std::exp2(3 * rng.uniform());
      problem.columns.push_back({{{j, speeds[j][k]}}, {{k, 1}}});
    }
  }
  if (pairs == Pairs::kNone) return problem;
  for (size_t k = 0; k < kinds; ++k)
    for (size_t a = 0; a < jobs; ++a)
      for (size_t b = a + 1; b < jobs; ++b)
        if (speeds[a][k] > 0 && speeds[b][k] > 0)
          problem.columns.push_back({{{a, speeds[a][k] * (0.4 + 0.5 * rng.uniform())},
                                      {b, speeds[b][k] * (0.4 + 0.5 * rng.uniform())}},
                                     {{k, 1}}});
  return problem;
}

std::vector<Inequality> limits_of(const AllocationProblem& problem, size_t variables) {
  std::vector<Inequality> rows;
  for (size_t j = 0; j < problem.jobs.size(); ++j) {
    Inequality row{std::vector<double>(variables), 1};
    for (size_t c = 0; c < problem.columns.size(); ++c)
      for (const auto& part : problem.columns[c].parts)
        if (part.job == j) row.factors[c] = 1;
    rows.push_back(row);
  }
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    Inequality row{std::vector<double>(variables), problem.kinds[k].gpus};
    for (size_t c = 0; c < problem.columns.size(); ++c)
      for (const auto& use : problem.columns[c].uses)
        if (use.kind == k) row.factors[c] = use.gpus;
    rows.push_back(row);
  }
  return rows;
}

double best_throughput(const AllocationProblem& problem) {
  const std::vector<double> fastest = fastest_speeds(problem);
  std::vector<double> objective(problem.columns.size());
  for (size_t c = 0; c < objective.size(); ++c)
    for (const auto& [job, speed] : problem.columns[c].parts)
      objective[c] += problem.jobs[job].weight * speed / fastest[job];
  return best_corner(objective, limits_of(problem, objective.size()));
}

/// The highest z with speed >= z · demand of each job.
double best_least(const AllocationProblem& problem, const std::vector<double>& demands) {
  const size_t variables = problem.columns.size() + 1;
  std::vector<Inequality> rows = limits_of(problem, variables);
  for (size_t j = 0; j < demands.size(); ++j) {
    Inequality row{std::vector<double>(variables), 0};
    for (size_t c = 0; c < problem.columns.size(); ++c)
      for (const auto& [job, speed] : problem.columns[c].parts)
        if (job == j) row.factors[c] = -speed / demands[j];
    row.factors.back() = 1;
    rows.push_back(row);
  }
  std::vector<double> objective(variables);
  objective.back() = 1;
  return best_corner(objective, rows);
}

std::vector<double> fair_demands(const AllocationProblem& problem) {
  std::vector<double> demands = equal_speeds(problem);
  for (size_t j = 0; j < demands.size(); ++j) demands[j] *= problem.jobs[j].weight;
  return demands;
}

std::vector<double> steps_of(const AllocationProblem& problem) {
  std::vector<double> steps;
  for (const Job& job : problem.jobs) steps.push_back(job.steps);
  return steps;
}

void expect_near(double expected, double actual, const char* what, uint64_t seed) {
  EXPECT_NEAR(expected, actual, kTolerance * std::max(1.0, std::abs(expected)))
      << what << ", seed " << seed;
}

void expect_within_limits(const AllocationProblem& problem, const Allocation& allocation) {
  std::vector<double> jobs(problem.jobs.size()), kinds(problem.kinds.size());
  for (const TimedColumn& placement : allocation.placements) {
    for (const auto& part : problem.columns[placement.column].parts)
      jobs[part.job] += placement.share;
    for (const auto& use : problem.columns[placement.column].uses)
      kinds[use.kind] += placement.share * use.gpus;
  }
  for (const double share : jobs) EXPECT_LE(share, 1 + kTolerance);
  for (size_t k = 0; k < kinds.size(); ++k)
    EXPECT_LE(kinds[k], problem.kinds[k].gpus * (1 + kTolerance));
}

TEST(Allocation, EqualsBruteForceOnRandomPools) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const Pairs pairs = seed % 2 == 0 ? Pairs::kAll : Pairs::kNone;
    const AllocationProblem problem = random_problem(rng, 2 + seed % 2, 2, pairs);
    ASSERT_LE(problem.columns.size(), 6u);  // else there are too many corners
    const Allocation throughput = maximize_throughput(problem);
    expect_near(best_throughput(problem), throughput.objective, "throughput", seed);
    expect_within_limits(problem, throughput);
    const double fairness = best_least(problem, fair_demands(problem));
    expect_near(fairness, maximize_fairness(problem).objective, "fairness", seed);
    expect_near(1 / best_least(problem, steps_of(problem)), minimize_makespan(problem).objective,
                "makespan", seed);
    AllocationProblem same_weights = problem;
    for (Job& job : same_weights.jobs) job.weight = 1;
    expect_near(1 / best_least(same_weights, equal_speeds(problem)),
                minimize_finish_time_ratio(problem).objective, "finish time", seed);
  }
}

TEST(Allocation, NoRatioOfFinishTimesIsLowerForJobsThatHaveWaited) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    AllocationProblem problem = random_problem(rng, 3, 2, Pairs::kNone);
    const std::vector<double> equal = equal_speeds(problem);
    for (size_t j = 0; j < problem.jobs.size(); ++j) {
      Job& job = problem.jobs[j];
      job.all_steps = job.steps * (1 + rng.uniform());
      job.elapsed_s = rng.uniform() * 2 * job.all_steps / equal[j];
    }
    const double ratio = minimize_finish_time_ratio(problem).objective;
    for (const auto& [factor, reached] : {std::pair{1.0001, true}, {0.999, false}}) {
      std::vector<double> demands;
      bool possible = true;
      for (size_t j = 0; j < problem.jobs.size(); ++j) {
        const Job& job = problem.jobs[j];
        const double left_s = factor * ratio * job.all_steps / equal[j] - job.elapsed_s;
        possible = possible && left_s > 0;
        demands.push_back(job.steps / left_s);
      }
      EXPECT_EQ(possible && best_least(problem, demands) >= 1, reached) << "seed " << seed;
    }
  }
}

/// Calls `visit` with each way to give each job one of its columns, or none.
void for_each_choice(const AllocationProblem& problem,
                     const std::function<void(const std::vector<size_t>&)>& visit) {
  std::vector<size_t> chosen;
  const std::function<void(size_t)> choose = [&](size_t job) {
    if (job == problem.jobs.size()) return visit(chosen);
    choose(job + 1);
    for (size_t c = 0; c < problem.columns.size(); ++c) {
      if (problem.columns[c].parts[0].job != job) continue;
      chosen.push_back(c);
      choose(job + 1);
      chosen.pop_back();
    }
  };
  choose(0);
}

TEST(Allocation, OfWholeJobsEqualsBruteForceOnRandomPools) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    AllocationProblem problem = random_problem(rng, 4, 3, Pairs::kNone);
    for (auto& column : problem.columns)
      if (problem.kinds[column.uses[0].kind].gpus > 1 && rng.below(4) == 0) column.uses[0].gpus = 2;
    problem.whole = true;
    const std::vector<double> fastest = fastest_speeds(problem), fair = fair_demands(problem);
    double throughput = 0, fairness = 0;
    for_each_choice(problem, [&](const std::vector<size_t>& chosen) {
      std::vector<double> used(problem.kinds.size()), speeds(problem.jobs.size());
      for (const size_t c : chosen) {
        used[problem.columns[c].uses[0].kind] += problem.columns[c].uses[0].gpus;
        speeds[problem.columns[c].parts[0].job] = problem.columns[c].parts[0].steps_per_s;
      }
      for (size_t k = 0; k < used.size(); ++k)
        if (used[k] > problem.kinds[k].gpus) return;
      double sum = 0, least = kNoEnd;
      for (size_t j = 0; j < speeds.size(); ++j) {
        sum += problem.jobs[j].weight * speeds[j] / fastest[j];
        least = std::min(least, speeds[j] / fair[j]);
      }
      throughput = std::max(throughput, sum);
      fairness = std::max(fairness, least);
    });
    expect_near(throughput, maximize_throughput(problem).objective, "throughput", seed);
    expect_near(fairness, maximize_fairness(problem).objective, "fairness", seed);
  }
}

/// Kinds of one GPU each, where a queue takes as long as the sum of its jobs.
AllocationProblem random_queues(Rng& rng) {
  AllocationProblem problem = random_problem(rng, 5, 2, Pairs::kNone);
  for (auto& kind : problem.kinds) kind.gpus = 1;
  problem.whole = true;
  return problem;
}

TEST(Allocation, OfWholeJobsEndsAsEarlyAsBruteForce) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const AllocationProblem problem = random_queues(rng);
    double end = kNoEnd;
    for_each_choice(problem, [&](const std::vector<size_t>& chosen) {
      if (chosen.size() < problem.jobs.size()) return;
      std::vector<double> busy(problem.kinds.size());
      for (const size_t c : chosen)
        busy[problem.columns[c].uses[0].kind] +=
            problem.jobs[problem.columns[c].parts[0].job].steps /
            problem.columns[c].parts[0].steps_per_s;
      end = std::min(end, *std::max_element(busy.begin(), busy.end()));
    });
    expect_near(end, minimize_makespan(problem).objective, "makespan", seed);
  }
}

/// Whether jobs on one GPU meet their deadlines: those due first go first.
bool all_meet(const AllocationProblem& problem, std::vector<size_t> columns) {
  const auto job = [&](size_t c) { return problem.jobs[problem.columns[c].parts[0].job]; };
  std::sort(columns.begin(), columns.end(),
            [&](size_t a, size_t b) { return job(a).deadline_s < job(b).deadline_s; });
  double time = 0;
  for (const size_t c : columns) {
    time += job(c).steps / problem.columns[c].parts[0].steps_per_s;
    if (time > job(c).deadline_s) return false;
  }
  return true;
}

TEST(Allocation, AsManyJobsMeetDeadlinesAsByBruteForce) {
  int late = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    AllocationProblem problem = random_queues(rng);
    const size_t kinds = 1 + seed % 2;
    std::erase_if(problem.columns, [&](const Column& c) { return c.uses[0].kind >= kinds; });
    problem.kinds.resize(kinds);
    double sum = 0;
    for (const Column& column : problem.columns)
      sum += problem.jobs[column.parts[0].job].steps / column.parts[0].steps_per_s;
    for (Job& job : problem.jobs) job.deadline_s = sum / 2 * (0.1 + rng.uniform());
    double met = 0, all = 0;
    for (const Job& job : problem.jobs) all += job.weight;
    for_each_choice(problem, [&](const std::vector<size_t>& chosen) {
      double weights = 0;
      std::vector<std::vector<size_t>> queues(problem.kinds.size());
      for (const size_t c : chosen) {
        weights += problem.jobs[problem.columns[c].parts[0].job].weight;
        queues[problem.columns[c].uses[0].kind].push_back(c);
      }
      for (const auto& queue : queues)
        if (!all_meet(problem, queue)) return;
      met = std::max(met, weights);
    });
    late += met < all - kTolerance ? 1 : 0;
    expect_near(met, meet_deadlines(problem).objective, "whole jobs", seed);
    problem.whole = false;  // may move between kinds: at least as many; on one GPU the same
    const Allocation shares = meet_deadlines(problem);
    if (kinds == 1) expect_near(met, shares.objective, "shares", seed);
    EXPECT_GE(shares.objective, met - kTolerance) << "seed " << seed;
  }
  EXPECT_GT(late, 20);  // else the deadlines are no matter
}

TEST(Allocation, CostsLeastWithoutDeadlinesWhereEachStepDoes) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    AllocationProblem problem = random_problem(rng, 4, 3, Pairs::kNone);
    std::vector<double> least(problem.jobs.size(), kNoEnd);
    for (const Column& column : problem.columns) {
      const auto& [job, speed] = column.parts[0];
      least[job] = std::min(least[job], problem.jobs[job].steps / speed *
                                            problem.kinds[column.uses[0].kind].price_per_gpu_s);
    }
    const double cost = std::accumulate(least.begin(), least.end(), 0.0);
    for (const bool whole : {false, true}) {
      problem.whole = whole;
      const Allocation allocation = minimize_cost(problem);
      EXPECT_NEAR(allocation.objective, cost, 1e-5 * cost) << "seed " << seed;
      double sum = 0;
      for (const JobShare& share : shares_of(problem, allocation)) sum += share.cost;
      EXPECT_NEAR(sum, cost, 1e-5 * cost) << "seed " << seed;
    }
  }
}

TEST(Allocation, AColumnsOwnCostIsThatOfItsSeconds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    AllocationProblem problem = random_problem(rng, 4, 3, Pairs::kNone);
    std::vector<double> least(problem.jobs.size(), kNoEnd);
    for (Column& column : problem.columns) {
      column.cost_per_s = 1 + rng.uniform();
      const auto& [job, speed] = column.parts[0];
      least[job] = std::min(least[job], problem.jobs[job].steps / speed * *column.cost_per_s);
    }
    const double cost = std::accumulate(least.begin(), least.end(), 0.0);
    for (const bool whole : {false, true}) {
      problem.whole = whole;
      EXPECT_NEAR(minimize_cost(problem).objective, cost, 1e-5 * cost) << "seed " << seed;
    }
    problem.whole = false;
    EXPECT_GE(minimize_cost(without_kinds(problem)).objective, (1 - 1e-5) * cost);
  }
}

TEST(Allocation, TakesMoreGpusOrTheEarlierDeadlineFirst) {
  // Two jobs of an hour each; one is due in an hour, the other in two: in turn on one GPU.
  AllocationProblem problem{
      .kinds = {{1, 1}},
      .jobs = {{.steps = 3600, .deadline_s = 7200}, {.steps = 3600, .deadline_s = 3600}},
      .columns = {{{{0, 1}}, {{0, 1}}}, {{{1, 1}}, {{0, 1}}}}};
  const Allocation in_turn = meet_deadlines(problem);
  EXPECT_NEAR(in_turn.objective, 2, kTolerance);
  const std::vector<JobShare> shares = shares_of(problem, in_turn);
  EXPECT_NEAR(shares[0].finish_s, 7200, 1e-3);
  EXPECT_NEAR(shares[1].finish_s, 3600, 1e-3);
  EXPECT_EQ(gpus_to_meet_deadlines(problem, 0), 0.0);
  problem.jobs[0].deadline_s = 3600;
  EXPECT_NEAR(meet_deadlines(problem).objective, 1, kTolerance);
  EXPECT_EQ(gpus_to_meet_deadlines(problem, 0), 1.0);
}

TEST(Allocation, MoreOfAKindPairsAndKindsToldApartNeverHurt) {
  using Function = Allocation (*)(const AllocationProblem&);
  constexpr std::pair<Function, double> kFunctions[] = {
      {maximize_throughput, 1}, {maximize_fairness, 1}, {minimize_makespan, -1}};
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    const AllocationProblem problem = random_problem(rng, 8, 3, Pairs::kAll);
    for (const auto& [solve, sign] : kFunctions) {
      const double value = sign * solve(problem).objective;
      AllocationProblem alone = problem, turned = problem;
      std::erase_if(alone.columns, [](const Column& c) { return c.parts.size() > 1; });
      EXPECT_GE(value, sign * solve(alone).objective - kTolerance * std::abs(value)) << seed;
      const double blind = sign * solve(without_kinds(problem)).objective;
      EXPECT_GE(value, blind - kTolerance * std::abs(blind)) << seed;
      std::reverse(turned.columns.begin(), turned.columns.end());
      EXPECT_NEAR(value, sign * solve(turned).objective, kTolerance * std::abs(value)) << seed;
      if (solve == maximize_fairness) continue;  // an equal share becomes larger, too
      AllocationProblem larger = problem;
      larger.kinds[0].gpus += 1;
      EXPECT_GE(sign * solve(larger).objective, value - kTolerance * std::abs(value)) << seed;
    }
  }
}

TEST(Allocation, OfAlikeJobsIsThatOfEachAlone) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    AllocationProblem problem = random_problem(rng, 4, 3, Pairs::kNone);
    const size_t jobs = problem.jobs.size(), columns = problem.columns.size();
    for (size_t j = 0; j < jobs; ++j) problem.jobs.push_back(problem.jobs[j]);
    for (size_t c = 0; c < columns; ++c) {
      problem.columns.push_back(problem.columns[c]);
      problem.columns.back().parts[0].job += jobs;
    }
    const Allocation together = maximize_fairness(problem);
    expect_within_limits(problem, together);
    for (const JobShare& share : shares_of(problem, together)) EXPECT_GT(share.steps_per_s, 0);
    // With a pair that nobody wants, no jobs are taken as one.
    const double slow = 1e-6;
    problem.columns.push_back({{{0, slow}, {1, slow}}, {{0, 1}}});
    expect_near(maximize_fairness(problem).objective, together.objective, "fairness", seed);
  }
}

TEST(PoolOverTime, TakesTheJobThatGainsMostToTheFasterKind) {
  // Kind 1 is 4 times as fast for job type 1, and no faster for type 0.
  const std::vector<std::vector<double>> speeds{{1, 1}, {1, 4}};
  PoolOverTime pool{.kinds = {{1, 0}, {1, 0}},
                    .jobs = {{.type = 1, .steps = 400}, {.type = 0, .steps = 100}},
                    .columns = {}};
  pool.columns = [&](const std::vector<size_t>& types) {
    std::vector<Column> columns;
    for (size_t i = 0; i < types.size(); ++i)
      for (size_t kind = 0; kind < 2; ++kind)
        columns.push_back({{{i, speeds[types[i]][kind]}}, {{kind, 1}}});
    return columns;
  };
  const SimulatedPool first = simulate_first_come(pool);
  EXPECT_NEAR(first.ends_s[0], 400, 1e-6);  // the first kind was free
  EXPECT_NEAR(first.ends_s[1], 100, 1e-6);
  const SimulatedPool ours = simulate_objective(pool, maximize_throughput, Sees::kKinds);
  EXPECT_NEAR(ours.ends_s[0], 100, 1e-3);
  EXPECT_NEAR(ours.ends_s[1], 100, 1e-3);
  // Half of the time on each kind, until both end.
  const SimulatedPool blind = simulate_objective(pool, maximize_throughput, Sees::kPoolAlone);
  EXPECT_NEAR(blind.ends_s[0], 160, 1e-3);
  EXPECT_NEAR(blind.ends_s[1], 100, 1e-3);
  EXPECT_NEAR(blind.gpu_s[0] + blind.gpu_s[1], 260, 1e-3);
}

TEST(PoolOverTime, WaitsForArrivalsAndForGpus) {
  PoolOverTime pool{.kinds = {{1, 0}},
                    .jobs = {{.arrival_s = 10, .steps = 100}, {.arrival_s = 20, .steps = 50}},
                    .columns = [](const std::vector<size_t>& types) {
                      std::vector<Column> columns;
                      for (size_t i = 0; i < types.size(); ++i)
                        columns.push_back({{{i, 1}}, {{0, 1}}});
                      return columns;
                    }};
  const SimulatedPool first = simulate_first_come(pool);
  EXPECT_EQ(first.ends_s, (std::vector<double>{110, 160}));
  const SimulatedPool fair = simulate_objective(pool, maximize_fairness, Sees::kKinds);
  EXPECT_NEAR(fair.ends_s[1], 120, 1e-3);  // half of the GPU from 20 to 120
  EXPECT_NEAR(fair.ends_s[0], 160, 1e-3);
  EXPECT_NEAR(fair.gpu_s[0], 150, 1e-3);
}

TEST(LinearProgram, SaysThatNothingIsFeasible) {
  LinearProgram program;
  const int row = program.add_row(2, LinearProgram::kNoLimit);
  const std::vector<LinearProgram::Entry> entries{{row, 1}};
  program.add_column(0, 1, entries);
  EXPECT_FALSE(program.maximize({{1.0}}).feasible);
}

TEST(Allocation, OfOneKindIsAsGoodWithoutKinds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const AllocationProblem problem = random_problem(rng, 6, 1, Pairs::kAll);
    const double together = minimize_makespan(problem).objective;
    expect_near(together, minimize_makespan(without_kinds(problem)).objective, "makespan", seed);
    AllocationProblem alone = problem;
    std::erase_if(alone.columns, [](const Column& c) { return c.parts.size() > 1; });
    EXPECT_LE(together, minimize_makespan(alone).objective * (1 + kTolerance)) << "seed " << seed;
  }
}

TEST(Allocation, InTurnsEndsShortJobsEarly) {
  // One long job with a late deadline, one short with an early one, one short without.
  const AllocationProblem problem{
      .kinds = {{1, 0}},
      .jobs = {{.steps = 6e6, .deadline_s = 3.6e6},
               {.steps = 1000, .deadline_s = 400},
               {.steps = 2000}},
      .columns = {{{{0, 10}}, {{0, 1}}}, {{{1, 10}}, {{0, 1}}}, {{{2, 10}}, {{0, 1}}}}};
  const std::vector<JobShare> shares =
      shares_of(problem, in_turns(problem, meet_deadlines(problem)));
  EXPECT_LE(shares[0].finish_s, 3.6e6 * (1 + kTolerance));
  EXPECT_NEAR(shares[1].finish_s, 100, 1);
  EXPECT_LE(shares[2].finish_s, 601);
}

TEST(Allocation, InTurnsEndsNoJobLater) {
  int earlier = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    AllocationProblem problem =
        random_problem(rng, 6, 2, seed % 2 == 0 ? Pairs::kAll : Pairs::kNone);
    for (Job& job : problem.jobs)
      if (rng.below(3) > 0) job.deadline_s = 10 + 200 * rng.uniform();
    const Allocation before = meet_deadlines(problem), after = in_turns(problem, before);
    const std::vector<JobShare> was = shares_of(problem, before), is = shares_of(problem, after);
    for (size_t j = 0; j < was.size(); ++j) {
      EXPECT_LE(is[j].finish_s, was[j].finish_s * (1 + kTolerance)) << "seed " << seed;
      EXPECT_NEAR(is[j].steps_per_s * is[j].finish_s, was[j].steps_per_s * was[j].finish_s,
                  1e-6 * problem.jobs[j].steps)
          << "seed " << seed;
      earlier += is[j].finish_s < was[j].finish_s * 0.99 ? 1 : 0;
    }
    // At each begin the kinds have GPUs for all that runs, and a job runs once.
    for (const TimedColumn& at : after.placements) {
      const double time = at.begin_s + 1e-6 * (at.end_s - at.begin_s);
      std::vector<double> used(problem.kinds.size()), runs(problem.jobs.size());
      for (const TimedColumn& one : after.placements) {
        if (one.begin_s > time || one.end_s <= time) continue;
        for (const auto& [kind, gpus] : problem.columns[one.column].uses)
          used[kind] += one.share * gpus;
        for (const auto& part : problem.columns[one.column].parts) runs[part.job] += one.share;
      }
      for (size_t k = 0; k < used.size(); ++k)
        EXPECT_LE(used[k], problem.kinds[k].gpus + 1e-5) << "seed " << seed;
      for (const double share : runs) EXPECT_LE(share, 1 + 1e-5) << "seed " << seed;
    }
  }
  EXPECT_GT(earlier, 20);
}

TEST(Allocation, OfWholeJobsRefusesTooManyDeadlines) {
  AllocationProblem problem{
      .kinds = {{2, 0}}, .jobs = {}, .columns = {}, .whole = true, .near = {}};
  for (size_t j = 0; j < 4000; ++j) {
    problem.columns.push_back({{{j, 1}}, {{0, 1}}});
    problem.jobs.push_back({.steps = 1, .deadline_s = 4000 + static_cast<double>(j)});
  }
  EXPECT_THROW(meet_deadlines(problem), Error);
  for (Job& job : problem.jobs) job.deadline_s = std::ceil(job.deadline_s / 1000) * 1000;
  const Allocation rounded = meet_deadlines(problem);
  EXPECT_NEAR(rounded.objective, 4000, 1);
  EXPECT_TRUE(rounded.proven);
}

TEST(QuietOutput, WritesNothingWhileItLives) {
  testing::internal::CaptureStdout();
  std::printf("before ");
  {
    const QuietOutput quiet;
    std::printf("9998 slacks added\n");
    std::puts("and more");
  }
  std::printf("after");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "before after");
}

TEST(LinearProgram, RefusesFactorsThatEndTheSolver) {
  LinearProgram program;
  const int row = program.add_row(0, 1);
  const std::vector<LinearProgram::Entry> entries{{row, 1}}, large{{row, 1e30}};
  program.add_column(0, 1, entries);
  EXPECT_THROW(program.maximize({{1e300}}), Error);
  EXPECT_THROW(program.maximize({{std::nan("")}}), Error);
  EXPECT_THROW(program.add_column(0, 1, large), Error);
}

TEST(Allocation, OfNumbersThatAreFarApart) {
  // Two jobs on two GPUs: each has one.
  AllocationProblem problem{.kinds = {{2, 0}},
                            .jobs = {{.weight = 1e26, .steps = 1e26}, {.steps = 1}},
                            .columns = {{{{0, 1}}, {{0, 1}}}, {{{1, 1}}, {{0, 1}}}}};
  EXPECT_NEAR(minimize_makespan(problem).objective, 1e26, 1e20);
  EXPECT_NEAR(maximize_throughput(problem).objective, 1e26, 1e20);
  EXPECT_NEAR(maximize_fairness(problem).objective, 1e-26, 1e-32);
  for (const auto solve : {minimize_makespan, maximize_fairness})
    for (const JobShare& share : shares_of(problem, solve(problem)))
      EXPECT_GT(share.steps_per_s, 0);
  problem.jobs[0].weight = 1e300;
  EXPECT_NEAR(maximize_throughput(problem).objective, 1e300, 1e294);
  problem.jobs[1].deadline_s = 1;
  EXPECT_NEAR(meet_deadlines(problem).objective, 1, kTolerance);
}

struct OrderBest {
  double end_s = kNoEnd, met = 0;
};

/// The best of all ways to give each job one of its columns and to take them in turn.
OrderBest best_of_orders(const AllocationProblem& problem) {
  OrderBest best;
  for_each_choice(problem, [&](std::vector<size_t> chosen) {
    if (chosen.size() < problem.jobs.size()) return;
    std::sort(chosen.begin(), chosen.end());
    do {
      std::vector<TimedWork> order;
      for (const size_t c : chosen)
        order.push_back({c, problem.jobs[problem.columns[c].parts[0].job].steps /
                                problem.columns[c].parts[0].steps_per_s});
      double end = 0, met = 0;
      for (const TimedColumn& placement : run_in_order(problem, order, 0)) {
        const Job& job = problem.jobs[problem.columns[placement.column].parts[0].job];
        end = std::max(end, placement.end_s);
        if (placement.end_s <= job.deadline_s) met += job.weight;
      }
      best.end_s = std::min(best.end_s, end);
      best.met = std::max(best.met, met);
    } while (std::next_permutation(chosen.begin(), chosen.end()));
  });
  return best;
}

TEST(Allocation, OfWholeJobsOnSeveralGpusIsBestWhereItSaysSo) {
  int proven = 0, best_ends = 0, best_met = 0;
  constexpr int kSeeds = 60;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rng rng(seed);
    AllocationProblem problem = random_problem(rng, 5, 2, Pairs::kNone);
    for (auto& kind : problem.kinds) kind.gpus = static_cast<double>(2 + rng.below(2));
    for (Column& column : problem.columns)
      if (rng.below(4) == 0) column.uses[0].gpus = 2;
    problem.whole = true;
    for (Job& job : problem.jobs) job.deadline_s = 20 + 60 * rng.uniform();
    const OrderBest best = best_of_orders(problem);
    const Allocation makespan = minimize_makespan(problem), met = meet_deadlines(problem);
    EXPECT_GE(makespan.objective, best.end_s * (1 - kTolerance)) << "seed " << seed;
    EXPECT_LE(met.objective, best.met + kTolerance) << "seed " << seed;
    if (makespan.proven) expect_near(best.end_s, makespan.objective, "makespan", seed);
    if (met.proven) expect_near(best.met, met.objective, "deadlines", seed);
    proven += (makespan.proven ? 1 : 0) + (met.proven ? 1 : 0);
    best_ends += makespan.objective <= best.end_s * (1 + kTolerance) ? 1 : 0;
    best_met += met.objective >= best.met - kTolerance ? 1 : 0;
  }
  EXPECT_GE(proven, kSeeds);  // of two objectives
  EXPECT_GE(best_ends, kSeeds * 9 / 10);
  EXPECT_GE(best_met, kSeeds * 9 / 10);
}

TEST(Allocation, OfWholeJobsFillsTwoGpus) {
  AllocationProblem problem{
      .kinds = {{2, 0}}, .jobs = {}, .columns = {}, .whole = true, .near = {}};
  for (const double steps : {300, 300, 200, 200, 200}) {
    problem.columns.push_back({{{problem.jobs.size(), 1}}, {{0, 1}}});
    problem.jobs.push_back({.steps = steps, .deadline_s = 600});
  }
  const Allocation makespan = minimize_makespan(problem), met = meet_deadlines(problem);
  EXPECT_NEAR(makespan.objective, 600, 1e-3);
  EXPECT_TRUE(makespan.proven);
  EXPECT_NEAR(met.objective, 5, 1e-3);
  EXPECT_TRUE(met.proven);
  problem.jobs.pop_back();
  problem.columns.pop_back();
  problem.jobs[0].steps = 500;
  problem.jobs[1].steps = problem.jobs[2].steps = problem.jobs[3].steps = 300;
  const Allocation uneven = minimize_makespan(problem);
  EXPECT_NEAR(uneven.objective, 800, 1e-3);
  EXPECT_FALSE(uneven.proven);  // half of all work is 700
}

TEST(Allocation, OfThreeEqualJobsOnTwoGpusIsProven) {
  AllocationProblem problem{
      .kinds = {{2, 0}}, .jobs = {}, .columns = {}, .whole = true, .near = {}};
  for (size_t j = 0; j < 3; ++j) {
    problem.columns.push_back({{{j, 1}}, {{0, 1}}});
    problem.jobs.push_back({.steps = 100, .deadline_s = 150});
  }
  const Allocation makespan = minimize_makespan(problem), met = meet_deadlines(problem);
  EXPECT_NEAR(makespan.objective, 200, 1e-3);
  EXPECT_TRUE(makespan.proven);
  EXPECT_NEAR(met.objective, 2, kTolerance);
  EXPECT_TRUE(met.proven);
}

/// Jobs that all differ, each slowest on kind 0.
AllocationProblem many_jobs(size_t jobs, size_t kinds, double jobs_per_gpu) {
  Rng rng(1);
  AllocationProblem problem;
  for (size_t k = 0; k < kinds; ++k)
    problem.kinds.push_back(
        {std::floor(static_cast<double>(jobs) / (jobs_per_gpu * static_cast<double>(kinds))),
         1e-3});
  for (size_t j = 0; j < jobs; ++j) {
    const double size = std::exp2(6 * rng.uniform()), gain = 2 + 28 * rng.uniform();
    double fastest = 0;
    for (size_t k = 0; k < kinds; ++k) {
      const double speed = size * std::pow(gain, (static_cast<double>(k) + rng.uniform()) /
                                                     static_cast<double>(kinds));
      problem.columns.push_back({{{j, speed}}, {{k, 1}}});
      fastest = std::max(fastest, speed);
    }
    problem.jobs.push_back({.steps = fastest * 3600 * std::pow(24, rng.uniform())});
  }
  return problem;
}

TEST(Allocation, OfTenThousandJobsThatAllDifferTakesSeconds) {
  using Function = Allocation (*)(const AllocationProblem&);
  constexpr Function kFunctions[] = {maximize_throughput, minimize_makespan, maximize_fairness,
                                     minimize_finish_time_ratio};
  constexpr double kMostS = 30;  // 1 to 7 on one core; more than 100 by the simplex method alone
  for (const double jobs_per_gpu : {8.0, 1.5}) {
    const AllocationProblem problem = many_jobs(10'000, 3, jobs_per_gpu);
    for (const Function solve : kFunctions) {
      if (solve == minimize_finish_time_ratio && jobs_per_gpu < 8) continue;  // 30 rounds
      const std::clock_t begin = std::clock();
      const Allocation allocation = solve(problem);
      EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kMostS);
      EXPECT_TRUE(allocation.feasible && allocation.proven);
      expect_within_limits(problem, allocation);
    }
  }
}

TEST(BasisAtPrices, ChangesNoObjectiveAndSavesSteps) {
  for (const double jobs_per_gpu : {8.0, 2.0, 1.0, 0.5})
    for (const size_t kinds : {2, 5}) {  // of one kind all jobs are as good for the throughput
      const AllocationProblem problem = many_jobs(600, kinds, jobs_per_gpu);
      const std::vector<double> steps = steps_of(problem);
      const SharesProgram shares(problem, steps, units_of(problem, steps));
      const std::vector<std::vector<double>> objectives{shares.least, shares.throughput};
      const auto cold = shares.program.maximize(objectives);
      const auto warm = shares.program.maximize(
          objectives, 0, [&](size_t level, const LinearProgram::Solution& before) {
            std::vector<PoolPrices> prices;
            for (const std::vector<double>& rows : cold.row_prices) {
              prices.push_back({.kinds = {}, .least = cold.objective_values[0]});
              for (const int row : shares.kind_rows)
                prices.back().kinds.push_back(1.001 * std::abs(rows[static_cast<size_t>(row)]));
            }
            if (level == 0) return basis_of_least(problem, shares, prices[0], prices[1]);
            prices[1].least = before.values.back();
            return basis_at_prices(problem, shares, objectives[1], prices[1]);
          });
      for (size_t level = 0; level < 2; ++level)
        EXPECT_NEAR(warm.objective_values[level], cold.objective_values[level],
                    1e-5 * cold.objective_values[level])
            << kinds << " kinds, " << jobs_per_gpu;
      EXPECT_LT(warm.steps, std::max<int64_t>(60, cold.steps / 4))
          << kinds << " kinds, " << jobs_per_gpu;
    }
}

TEST(Allocation, OfPricesOfAnotherPoolIsTheSame) {
  AllocationProblem problem = many_jobs(500, 3, 4);
  const Allocation far = minimize_makespan(many_jobs(300, 3, 0.5));
  const double makespan = minimize_makespan(problem).objective,
               throughput = maximize_throughput(problem).objective;
  ASSERT_EQ(far.prices.size(), 2u);
  problem.near = far.prices;
  expect_near(makespan, minimize_makespan(problem).objective, "makespan", 0);
  problem.near.resize(1);
  expect_near(throughput, maximize_throughput(problem).objective, "throughput", 0);
}

}  // namespace
}  // namespace tilecast
