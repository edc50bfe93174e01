// Objectives that divide the GPUs' time once: each job keeps its shares until it ends.

#include <algorithm>
#include <cmath>
#include <map>

#include "allocation/linear_program.h"
#include "allocation/problem.h"
#include "allocation/queue.h"
#include "allocation/shares_program.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;

/// Relative to the heaviest weight.
std::vector<double> throughput_of(const AllocationProblem& problem, size_t variables) {
  const std::vector<double> fastest = fastest_speeds(problem);
  const double heaviest = heaviest_weight(problem);
  std::vector<double> objective(variables);
  for (size_t c = 0; c < problem.columns.size(); ++c) {
    for (const auto& [job, speed] : problem.columns[c].parts)
      if (fastest[job] > 0)
        objective[c] += problem.jobs[job].weight / heaviest * speed / fastest[job];
  }
  return objective;
}

/// A program with a variable for each column, the share of its time, and last the least of all
/// jobs' speed / demand. Jobs without a demand are not asked.
struct LeastProgram {
  LinearProgram program;
  double scale = 1;  ///< of the least one
};

LeastProgram least_program(const AllocationProblem& problem, const std::vector<double>& demands) {
  LeastProgram least;
  const SharesRows rows(problem, least.program);
  const std::vector<double> fastest = fastest_speeds(problem);
  double slowest = kNoEnd;
  for (size_t j = 0; j < demands.size(); ++j)
    if (demands[j] > 0 && fastest[j] > 0) slowest = std::min(slowest, fastest[j] / demands[j]);
  if (slowest < kNoEnd) least.scale = slowest;
  // A job that needs less of its time gets this part: a smaller one is the solver's rounding.
  constexpr double kMostOfLeast = 1e6;
  std::vector<int> demand_rows(demands.size(), -1);
  for (size_t j = 0; j < demands.size(); ++j)
    if (demands[j] > 0 && fastest[j] > 0)
      demand_rows[j] = least.program.add_row(0, LinearProgram::kNoLimit);
  std::vector<LinearProgram::Entry> entries;
  for (const Column& column : problem.columns) {
    rows.entries(column, entries);
    for (const auto& [job, speed] : column.parts)
      if (demand_rows[job] >= 0)
        entries.push_back(
            {demand_rows[job],
             std::min(kMostOfLeast, speed / demands[job] / least.scale) / problem.jobs[job].count});
    const double most = problem.jobs[column.parts[0].job].count;
    least.program.add_column(0, most, entries, whole_if(problem.whole));
  }
  entries.clear();
  for (const int row : demand_rows)
    if (row >= 0) entries.push_back({row, -1});
  least.program.add_column(0, entries.empty() ? 0 : LinearProgram::kNoLimit, entries);
  return least;
}

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

Allocation solve_least(const AllocationProblem& problem, const std::vector<double>& demands) {
  const LeastProgram least = least_program(problem, demands);
  std::vector<double> lowest(least.program.columns());
  lowest.back() = 1;
  const auto solution = least.program.maximize(
      {lowest, throughput_of(problem, least.program.columns())}, gap_of(problem));
  Allocation allocation = allocation_of(problem, solution);
  if (solution.feasible) allocation.objective = solution.objective_values[0] * least.scale;
  return allocation;
}

/// Jobs with equal columns, weights and demands as one: an equal share for each is as good as any.
/// 10,000 jobs of a hundred types take seconds this way, else a minute.
class AlikeJobs {
 public:
  AlikeJobs(const AllocationProblem& problem, const std::vector<double>& demands)
      : columns_(problem.jobs.size()) {
    merged.kinds = problem.kinds;
    for (size_t c = 0; c < problem.columns.size(); ++c)
      columns_[problem.columns[c].parts[0].job].push_back(c);
    std::map<std::vector<double>, size_t> known;
    for (size_t j = 0; j < problem.jobs.size(); ++j) {
      std::vector<double> key{demands[j], problem.jobs[j].weight};
      for (const size_t c : columns_[j]) {
        key.push_back(problem.columns[c].parts[0].steps_per_s);
        for (const auto& [kind, gpus] : problem.columns[c].uses)
          key.insert(key.end(), {static_cast<double>(kind), gpus});
      }
      const auto [at, is_new] = known.try_emplace(std::move(key), members_.size());
      if (is_new) add(problem, j, demands[j]);
      members_[at->second].push_back(j);
      merged.jobs[at->second].count = static_cast<double>(members_[at->second].size());
    }
  }

  /// Pairs have two jobs each, and whole jobs no equal shares.
  static bool apply_to(const AllocationProblem& problem) {
    return !problem.whole &&
           std::all_of(problem.columns.begin(), problem.columns.end(),
                       [](const Column& column) { return column.parts.size() == 1; });
  }

  /// Gives each of the jobs its part.
  Allocation divided(const Allocation& allocation) const {
    Allocation all = allocation;
    all.placements.clear();
    for (const TimedColumn& timed : allocation.placements) {
      const size_t type = merged.columns[timed.column].parts[0].job;
      const size_t nth = timed.column - first_column_[type];
      for (const size_t job : members_[type])
        all.placements.push_back(
            {.column = columns_[job][nth], .share = timed.share / merged.jobs[type].count});
    }
    return all;
  }

  AllocationProblem merged;
  std::vector<double> demands;

 private:
  void add(const AllocationProblem& problem, size_t job, double demand) {
    first_column_.push_back(merged.columns.size());
    for (const size_t c : columns_[job]) {
      merged.columns.push_back(problem.columns[c]);
      merged.columns.back().parts[0].job = members_.size();
    }
    merged.jobs.push_back(problem.jobs[job]);
    demands.push_back(demand);
    members_.emplace_back();
  }

  std::vector<std::vector<size_t>> columns_;  ///< by job
  std::vector<std::vector<size_t>> members_;  ///< by merged job
  std::vector<size_t> first_column_;          ///< by merged job
};

/// The allocation whose least speed / demand is highest, which becomes its objective.
Allocation maximize_least(const AllocationProblem& problem, const std::vector<double>& demands) {
  if (!AlikeJobs::apply_to(problem)) return solve_least(problem, demands);
  const AlikeJobs alike(problem, demands);
  return alike.divided(solve_least(alike.merged, alike.demands));
}

}  // namespace

Allocation require_found(Allocation allocation) {
  if (allocation.feasible) return allocation;
  throw Error(ErrorKind::kUnsupported,
              "the solver Cbc gave up before it found an allocation: give fewer jobs, or weights, "
              "steps, speeds and deadlines that are closer to each other");
}

SharesRows::SharesRows(const AllocationProblem& problem, LinearProgram& program) {
  for (size_t j = 0; j < problem.jobs.size(); ++j)
    jobs_.push_back(program.add_row(-LinearProgram::kNoLimit, problem.jobs[j].count));
  for (const AllocationProblem::Kind& kind : problem.kinds)
    kinds_.push_back(program.add_row(-LinearProgram::kNoLimit, kind.gpus));
}

void SharesRows::entries(const Column& column, std::vector<LinearProgram::Entry>& entries) const {
  entries.clear();
  for (const auto& [job, speed] : column.parts) entries.push_back({jobs_[job], 1});
  for (const auto& [kind, gpus] : column.uses) entries.push_back({kinds_[kind], gpus});
}

Allocation maximize_throughput(const AllocationProblem& problem) {
  LinearProgram program;
  const SharesRows rows(problem, program);
  std::vector<LinearProgram::Entry> entries;
  for (const Column& column : problem.columns) {
    rows.entries(column, entries);
    program.add_column(0, 1, entries, whole_if(problem.whole));
  }
  const auto solution =
      program.maximize({throughput_of(problem, program.columns())}, gap_of(problem));
  Allocation allocation = allocation_of(problem, solution);
  if (solution.feasible)
    allocation.objective = solution.objective_values[0] * heaviest_weight(problem);
  return require_found(std::move(allocation));
}

Allocation maximize_fairness(const AllocationProblem& problem) {
  std::vector<double> demands = equal_speeds(problem);
  for (size_t j = 0; j < demands.size(); ++j) demands[j] *= problem.jobs[j].weight;
  return require_found(maximize_least(problem, demands));
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
  Allocation allocation = require_found(maximize_least(problem, demands));
  allocation.objective = ratio_of(allocation);
  constexpr int kMostRounds = 30;
  constexpr double kSame = 1e-6;
  for (int round = 0; round < kMostRounds && std::isfinite(allocation.objective); ++round) {
    for (size_t j = 0; j < demands.size(); ++j)
      if (asked(j))
        demands[j] =
            problem.jobs[j].steps / (allocation.objective * equal_s(j) - problem.jobs[j].elapsed_s);
    Allocation next = maximize_least(problem, demands);
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
  Allocation allocation = require_found(maximize_least(problem, steps));
  allocation.objective = allocation.objective > 0 ? 1 / allocation.objective : kNoEnd;
  return allocation;
}

}  // namespace tilecast
