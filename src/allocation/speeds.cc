// Speeds of jobs that objectives compare with, and what jobs get.

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "allocation/problem.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;

double gpus_of(const AllocationProblem& problem) {
  double gpus = 0;
  for (const AllocationProblem::Kind& kind : problem.kinds) gpus += kind.gpus;
  return gpus;
}

}  // namespace

double cost_per_s(const AllocationProblem& problem, const Column& column) {
  if (column.cost_per_s) return *column.cost_per_s;
  double cost = 0;
  for (const auto& [kind, gpus] : column.uses) cost += gpus * problem.kinds[kind].price_per_gpu_s;
  return cost;
}

std::vector<double> fastest_speeds(const AllocationProblem& problem) {
  std::vector<double> fastest(problem.jobs.size());
  for (const Column& column : problem.columns) {
    if (column.parts.size() != 1) continue;
    double& speed = fastest[column.parts[0].job];
    speed = std::max(speed, column.parts[0].steps_per_s);
  }
  for (size_t j = 0; j < fastest.size(); ++j)
    if (problem.jobs[j].fastest_per_s > 0) fastest[j] = problem.jobs[j].fastest_per_s;
  return fastest;
}

std::vector<double> equal_speeds(const AllocationProblem& problem) {
  const std::vector<double> fastest = fastest_speeds(problem);
  double jobs = 0;
  for (size_t j = 0; j < fastest.size(); ++j)
    if (fastest[j] > 0) jobs += problem.jobs[j].count;
  const double gpus = gpus_of(problem);
  // By job and kind the most that a column makes of its part.
  std::map<std::pair<size_t, size_t>, double> most;
  for (const Column& column : problem.columns) {
    if (column.parts.size() != 1 || column.uses.size() != 1) continue;
    const auto& [kind, used] = column.uses[0];
    const double time = problem.kinds[kind].gpus / gpus * std::min(1.0, gpus / (jobs * used));
    double& speed = most[{column.parts[0].job, kind}];
    speed = std::max(speed, time * column.parts[0].steps_per_s);
  }
  std::vector<double> equal(problem.jobs.size());
  for (const auto& [key, speed] : most) equal[key.first] += speed;
  for (size_t j = 0; j < equal.size(); ++j)
    if (problem.jobs[j].equal_per_s > 0) equal[j] = problem.jobs[j].equal_per_s;
  return equal;
}

AllocationProblem without_kinds(const AllocationProblem& problem) {
  AllocationProblem blind{
      .kinds = problem.kinds, .jobs = problem.jobs, .columns = {}, .whole = false, .near = {}};
  const std::vector<double> fastest = fastest_speeds(problem), equal = equal_speeds(problem);
  for (size_t j = 0; j < blind.jobs.size(); ++j) {
    blind.jobs[j].fastest_per_s = fastest[j];
    blind.jobs[j].equal_per_s = equal[j];
  }
  // By job and number of GPUs, for each kind the column of the highest speed.
  std::map<std::pair<size_t, double>, std::map<size_t, const Column*>> ways;
  for (const Column& column : problem.columns) {
    if (column.parts.size() != 1 || column.uses.size() != 1) continue;
    const Column*& best = ways[{column.parts[0].job, column.uses[0].gpus}][column.uses[0].kind];
    if (best == nullptr || column.parts[0].steps_per_s > best->parts[0].steps_per_s) best = &column;
  }
  for (const auto& [key, by_kind] : ways) {
    double gpus = 0, mean = 0;
    for (const auto& [kind, way] : by_kind) gpus += problem.kinds[kind].gpus;
    Column column;
    for (const auto& [kind, way] : by_kind) {
      const double part = problem.kinds[kind].gpus / gpus;
      mean += part * way->parts[0].steps_per_s;
      column.uses.push_back({kind, part * key.second});
      if (way->cost_per_s)
        column.cost_per_s = column.cost_per_s.value_or(0) + part * *way->cost_per_s;
    }
    column.parts.push_back({key.first, mean});
    blind.columns.push_back(std::move(column));
  }
  // Jobs beside each other, too: by both and their number of GPUs.
  std::map<std::tuple<size_t, size_t, double>, std::map<size_t, const Column*>> pairs;
  for (const Column& column : problem.columns)
    if (column.parts.size() == 2 && column.uses.size() == 1)
      pairs[{std::min(column.parts[0].job, column.parts[1].job),
             std::max(column.parts[0].job, column.parts[1].job), column.uses[0].gpus}]
          .try_emplace(column.uses[0].kind, &column);
  for (const auto& [key, by_kind] : pairs) {
    double gpus = 0;
    for (const auto& [kind, pair] : by_kind) gpus += problem.kinds[kind].gpus;
    Column column{.parts = {{std::get<0>(key), 0}, {std::get<1>(key), 0}}, .uses = {}};
    for (const auto& [kind, pair] : by_kind) {
      const double part = problem.kinds[kind].gpus / gpus;
      for (const auto& [job, speed] : pair->parts)
        column.parts[job == column.parts[0].job ? 0 : 1].steps_per_s += part * speed;
      column.uses.push_back({kind, part * std::get<2>(key)});
    }
    blind.columns.push_back(std::move(column));
  }
  return blind;
}

std::vector<JobShare> shares_of(const AllocationProblem& problem, const Allocation& allocation) {
  std::vector<JobShare> shares(problem.jobs.size());
  struct Sums {
    double steps = 0, last_s = 0, speed = 0, share = 0, time = 0, cost = 0, price = 0;
  };
  std::vector<Sums> sums(problem.jobs.size());
  for (const TimedColumn& placement : allocation.placements) {
    const Column& column = problem.columns[placement.column];
    const double price =
        placement.share * cost_per_s(problem, column) / static_cast<double>(column.parts.size());
    for (const auto& [job, speed] : column.parts) {
      Sums& sum = sums[job];
      if (placement.end_s == kNoEnd) {
        sum.speed += placement.share * speed;
        sum.share += placement.share;
        sum.price += price;
        continue;
      }
      const double length = placement.end_s - placement.begin_s;
      sum.steps += placement.share * speed * length;
      sum.time += placement.share * length;
      sum.cost += price * length;
      sum.last_s = std::max(sum.last_s, placement.end_s);
    }
  }
  for (size_t j = 0; j < shares.size(); ++j) {
    const Sums& sum = sums[j];
    JobShare& share = shares[j];
    if (sum.last_s > 0) {
      share = {.steps_per_s = sum.steps / sum.last_s,
               .finish_s = sum.last_s,
               .time_share = sum.time / sum.last_s,
               .cost = sum.cost};
    } else if (sum.speed > 0) {
      const double steps = problem.jobs[j].steps;
      share = {.steps_per_s = sum.speed,
               .finish_s = steps > 0 ? steps / sum.speed : kNoEnd,
               .time_share = sum.share,
               .cost = steps > 0 ? sum.price * steps / sum.speed : 0};
    }
  }
  return shares;
}

}  // namespace tilecast
