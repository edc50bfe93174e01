#include "placement/problem.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"

namespace tilecast {
namespace {

/// Ranks that hold a part.
double copies(const ShardChoice& choice) { return static_cast<double>(choice.parts); }

}  // namespace

void RankLoad::add(const TableShard& part, int sign) {
  forward_s += sign * part.forward_s;
  backward_s += sign * part.backward_s;
  columns += sign * part.columns;
  lookups += sign * part.lookups;
  bytes += sign * part.bytes;
  parts += sign;
}

std::vector<RankLoad> rank_loads(const ShardProblem& problem, const TablePlacement& placement) {
  std::vector<RankLoad> loads(static_cast<size_t>(problem.ranks));
  for (size_t t = 0; t < placement.size(); ++t) {
    const ShardChoice& choice = problem.tables[t].choices[placement[t].choice];
    for (const int32_t rank : placement[t].ranks) loads[static_cast<size_t>(rank)].add(choice.part);
  }
  return loads;
}

PlacementCost cost_of(const ShardProblem& problem, const TablePlacement& placement) {
  PlacementCost cost;
  double columns = 0;
  for (const RankLoad& load : rank_loads(problem, placement)) {
    cost.forward_s = std::max(cost.forward_s, load.forward_s);
    cost.backward_s = std::max(cost.backward_s, load.backward_s);
    columns = std::max(columns, load.columns);
    cost.missing_bytes += std::max<int64_t>(0, load.bytes - problem.bytes_per_rank);
  }
  if (columns > 0) cost.exchange_s = problem.exchange_s(columns);
  double reduced = 0;
  for (size_t t = 0; t < placement.size(); ++t)
    reduced += problem.tables[t].choices[placement[t].choice].reduce_bytes;
  if (reduced > 0) cost.reduce_s = problem.all_reduce_s(reduced);
  return cost;
}

double cost_bound(const ShardProblem& problem) {
  // The cheapest way may be another for each of the three sums: still no placement is below.
  double forward_s = 0, backward_s = 0;
  for (const ShardTable& table : problem.tables) {
    double forward = std::numeric_limits<double>::max(), backward = forward;
    for (const ShardChoice& c : table.choices) {
      forward = std::min(forward, copies(c) * c.part.forward_s);
      backward = std::min(backward, copies(c) * c.part.backward_s);
    }
    forward_s += forward;
    backward_s += backward;
  }
  return (forward_s + backward_s) / static_cast<double>(problem.ranks);
}

int64_t least_bytes(const ShardProblem& problem) {
  int64_t all = 0;
  for (const ShardTable& table : problem.tables) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const ShardChoice& c : table.choices)
      least = std::min(least, checked_multiply(c.parts, c.part.bytes));
    all = checked_add(all, least);
  }
  return all;
}

}  // namespace tilecast
