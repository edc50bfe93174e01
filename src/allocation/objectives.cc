// Objectives that divide the GPUs' time once: each job keeps its shares until it ends.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "allocation/alike_jobs.h"
#include "allocation/linear_program.h"
#include "allocation/problem.h"
#include "allocation/queue.h"
#include "allocation/shares_program.h"
#include "base/rng.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;

Allocation allocation_of(const AllocationProblem& problem,
                         const LinearProgram::Solution& solution) {
  Allocation allocation{.feasible = solution.feasible, .proven = solution.proven, .placements = {}};
  if (!solution.feasible) return allocation;
  for (size_t c = 0; c < problem.columns.size(); ++c) {
    const double most = problem.jobs[problem.columns[c].parts[0].job].count;
    const double share = std::min(most, solution.values[c]);
    if (share > kLeastShare) allocation.placements.push_back({.column = c, .share = share});
  }
  return allocation;
}

/// What is asked of shares of time: a high least speed / demand, and then a high throughput.
struct SharesAsked {
  std::vector<double> demands;  ///< by job; empty: throughput alone
  SharesUnits units;
};

struct SharesSolved {
  LinearProgram::Solution solution;
  std::vector<PoolPrices> prices;  ///< by objective
};

SharesSolved solve_shares(const AllocationProblem& problem, const SharesAsked& asked);

/// The prices of a part of the jobs, each of which stands for several: those of all are near.
std::vector<PoolPrices> sampled_prices(const AllocationProblem& problem, const SharesAsked& asked) {
  constexpr size_t kPart = 8;
  std::vector<size_t> chosen(problem.jobs.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  Rng rng(problem.jobs.size());
  const size_t count = chosen.size() / kPart;
  for (size_t i = 0; i < count; ++i) std::swap(chosen[i], chosen[i + rng.below(chosen.size() - i)]);
  chosen.resize(count);
  std::vector<size_t> place(problem.jobs.size(), problem.jobs.size());
  AllocationProblem part{.kinds = problem.kinds, .jobs = {}, .columns = {}};
  SharesAsked of_part{.demands = {}, .units = asked.units};
  double all = 0, some = 0;
  for (const AllocationProblem::Job& job : problem.jobs) all += job.count;
  for (const size_t j : chosen) some += problem.jobs[j].count;
  for (const size_t j : chosen) {
    place[j] = part.jobs.size();
    part.jobs.push_back(problem.jobs[j]);
    part.jobs.back().count *= all / some;
    if (!asked.demands.empty()) of_part.demands.push_back(asked.demands[j]);
  }
  for (const Column& column : problem.columns) {
    if (place[column.parts[0].job] == problem.jobs.size()) continue;
    part.columns.push_back(column);
    part.columns.back().parts[0].job = place[column.parts[0].job];
  }
  return solve_shares(part, of_part).prices;
}

/// From a program's units, of the objectives in their order.
std::vector<PoolPrices> times(std::vector<PoolPrices> prices, const SharesUnits& units) {
  for (size_t level = 0; level < prices.size(); ++level) {
    const bool of_least = prices.size() > 1 && level == 0;
    for (double& price : prices[level].kinds) price *= of_least ? units.least : units.weight;
    prices[level].least *= units.least;
  }
  return prices;
}

SharesSolved solve_shares(const AllocationProblem& problem, const SharesAsked& asked) {
  // Fewer jobs take the solver some milliseconds.
  constexpr size_t kFew = 200;
  const size_t levels = asked.demands.empty() ? 1 : 2;
  std::vector<PoolPrices> near;
  if (AlikeJobs::apply_to(problem)) {
    if (problem.near.size() == levels && problem.near[0].kinds.size() == problem.kinds.size())
      near = times(problem.near, {1 / asked.units.least, 1 / asked.units.weight});
    else if (problem.jobs.size() > kFew)
      near = times(sampled_prices(problem, asked), {1 / asked.units.least, 1 / asked.units.weight});
  }
  const SharesProgram shares(problem, asked.demands, asked.units);
  std::vector<std::vector<double>> objectives;
  if (!asked.demands.empty()) objectives.push_back(shares.least);
  objectives.push_back(shares.throughput);
  const auto start = [&](size_t level, const LinearProgram::Solution& before) {
    if (near.empty()) return LinearProgram::Basis{};
    if (level == 0 && levels == 2) return basis_of_least(problem, shares, near[0], near[1]);
    if (level > 0) near[level].least = before.values.back();
    return basis_at_prices(problem, shares, objectives[level], near[level]);
  };
  SharesSolved solved{.solution = shares.program.maximize(objectives, gap_of(problem), start),
                      .prices = {}};
  for (const std::vector<double>& rows : solved.solution.row_prices) {
    PoolPrices prices{.kinds = {}, .least = solved.solution.values.back()};
    for (const int row : shares.kind_rows)
      prices.kinds.push_back(std::abs(rows[static_cast<size_t>(row)]));
    solved.prices.push_back(std::move(prices));
  }
  solved.prices = times(std::move(solved.prices), asked.units);
  return solved;
}

/// The allocation whose least speed / demand is highest, which becomes its objective; without
/// demands the one with the highest throughput.
Allocation maximize(const AllocationProblem& problem, const std::vector<double>& demands) {
  const bool of_least = !demands.empty();
  const auto solve = [&](const AllocationProblem& of, const std::vector<double>& demanded) {
    const SharesAsked asked{.demands = demanded, .units = units_of(of, demanded)};
    SharesSolved solved = solve_shares(of, asked);
    Allocation allocation = allocation_of(of, solved.solution);
    allocation.prices = std::move(solved.prices);
    if (allocation.feasible)
      allocation.objective =
          solved.solution.objective_values[0] * (of_least ? asked.units.least : asked.units.weight);
    return allocation;
  };
  if (!AlikeJobs::apply_to(problem)) return solve(problem, demands);
  const AlikeJobs alike(problem, demands);
  return alike.divided(solve(alike.merged, alike.demands),
                       of_least ? Divide::kEqually : Divide::kInTurn);
}

}  // namespace

Allocation maximize_throughput(const AllocationProblem& problem) {
  return require_found(maximize(problem, {}));
}

Allocation maximize_fairness(const AllocationProblem& problem) {
  std::vector<double> demands = equal_speeds(problem);
  for (size_t j = 0; j < demands.size(); ++j) demands[j] *= problem.jobs[j].weight;
  return require_found(maximize(problem, demands));
}

Allocation minimize_finish_time_ratio(const AllocationProblem& problem) {
  const std::vector<double> equal = equal_speeds(problem);
  const auto equal_s = [&](size_t j) {
    const AllocationProblem::Job& job = problem.jobs[j];
    return (job.all_steps > 0 ? job.all_steps : job.steps) / equal[j];
  };
  const auto asked = [&](size_t j) { return equal[j] > 0 && problem.jobs[j].steps > 0; };
  const auto ratio_of = [&](const Allocation& allocation) {
    const std::vector<JobShare> shares = shares_of(problem, allocation);
    double ratio = 0;
    for (size_t j = 0; j < shares.size(); ++j)
      if (asked(j))
        ratio = std::max(ratio, (problem.jobs[j].elapsed_s + shares[j].finish_s) / equal_s(j));
    return ratio;
  };
  // A ratio is reached if each job's speed meets a demand that follows from it. The allocation that
  // exceeds these demands most has a lower ratio, and so on (as Dinkelbach's method for fractions).
  std::vector<double> demands(problem.jobs.size());
  for (size_t j = 0; j < demands.size(); ++j)
    if (asked(j)) demands[j] = problem.jobs[j].steps / equal_s(j);
  Allocation allocation = require_found(maximize(problem, demands));
  allocation.objective = ratio_of(allocation);
  constexpr int kMostRounds = 30;
  constexpr double kSame = 1e-6;
  for (int round = 0; round < kMostRounds && std::isfinite(allocation.objective); ++round) {
    for (size_t j = 0; j < demands.size(); ++j)
      if (asked(j))
        demands[j] =
            problem.jobs[j].steps / (allocation.objective * equal_s(j) - problem.jobs[j].elapsed_s);
    AllocationProblem again = problem;
    again.near = allocation.prices;
    Allocation next = maximize(again, demands);
    if (!next.feasible) break;
    next.objective = ratio_of(next);
    const bool same = next.objective > allocation.objective * (1 - kSame);
    if (next.objective < allocation.objective) allocation = std::move(next);
    if (same) break;
  }
  return allocation;
}

Allocation minimize_makespan(const AllocationProblem& problem) {
  if (problem.whole) return require_found(queue_for_makespan(problem));
  std::vector<double> steps;
  for (const AllocationProblem::Job& job : problem.jobs) steps.push_back(job.steps);
  Allocation allocation = require_found(maximize(problem, steps));
  allocation.objective = allocation.objective > 0 ? 1 / allocation.objective : kNoEnd;
  return allocation;
}

}  // namespace tilecast
