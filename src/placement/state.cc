#include "placement/state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tilecast {
namespace {

/// Weight of the mean square of the loads beside the cost.
constexpr double kBalance = 0.02;

}  // namespace

PlacementState::PlacementState(const ShardProblem& problem)
    : problem_(problem),
      placement_(problem.tables.size()),
      loads_(static_cast<size_t>(problem.ranks)) {
  double columns = 0;
  for (const ShardTable& table : problem.tables) columns += table.choices.front().part.columns;
  columns /= static_cast<double>(problem.ranks);
  if (columns > 0)
    column_s_ = (problem.exchange_s(2 * columns) - problem.exchange_s(columns)) / columns;
}

double PlacementState::weight(const TableShard& part) const {
  return part.forward_s + part.backward_s + column_s_ * part.columns;
}

double PlacementState::weight(const RankLoad& load) const {
  return load.forward_s + load.backward_s + column_s_ * load.columns;
}

PlacementState::Most PlacementState::most() const {
  Most most;
  for (const RankLoad& load : loads_) {
    most.forward_s = std::max(most.forward_s, load.forward_s);
    most.backward_s = std::max(most.backward_s, load.backward_s);
    most.columns = std::max(most.columns, load.columns);
  }
  return most;
}

double PlacementState::total_s() const {
  const Most m = most();
  return m.forward_s + m.backward_s + (m.columns > 0 ? problem_.exchange_s(m.columns) : 0) +
         (reduce_bytes_ >= 1 ? problem_.all_reduce_s(reduce_bytes_) : 0);
}

int64_t PlacementState::missing_bytes() const {
  int64_t missing = 0;
  for (const RankLoad& load : loads_)
    missing += std::max<int64_t>(0, load.bytes - problem_.bytes_per_rank);
  return missing;
}

double PlacementState::score() const {
  double squares = 0;
  for (const RankLoad& load : loads_) squares += weight(load) * weight(load);
  const double balance = std::sqrt(squares / static_cast<double>(problem_.ranks));
  double score = total_s() + kBalance * balance;
  if (const int64_t missing = missing_bytes(); missing > 0) {
    // Any placement that fits is better than one that does not.
    constexpr double kPrice = 1e3;
    const auto room = static_cast<double>(std::max<int64_t>(1, problem_.bytes_per_rank));
    score += kPrice * (1 + static_cast<double>(missing) / room);
  }
  return score;
}

void PlacementState::add(size_t table, int sign) {
  const ShardChoice& choice = choice_of(table);
  for (const int32_t rank : placement_[table].ranks)
    loads_[static_cast<size_t>(rank)].add(choice.part, sign);
  reduce_bytes_ += sign * choice.reduce_bytes;
}

void PlacementState::remove(size_t table) {
  add(table, -1);
  placement_[table].ranks.clear();
}

void PlacementState::put(size_t table, TablePlace place) {
  placement_[table] = std::move(place);
  add(table, 1);
}

TablePlace PlacementState::best_place(size_t table, size_t choice) const {
  const ShardChoice& c = problem_.tables[table].choices[choice];
  const auto ranks = static_cast<size_t>(problem_.ranks);
  const auto parts = static_cast<size_t>(c.parts);
  TablePlace place{.choice = choice, .ranks = {}};
  place.ranks.resize(ranks);
  std::iota(place.ranks.begin(), place.ranks.end(), 0);
  if (parts >= ranks) return place;
  const Most m = most();
  const double exchange = m.columns > 0 ? problem_.exchange_s(m.columns) : 0;
  std::vector<std::pair<double, int32_t>> delays;
  delays.reserve(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    const RankLoad& load = loads_[r];
    double delay = std::max(0.0, load.forward_s + c.part.forward_s - m.forward_s) +
                   std::max(0.0, load.backward_s + c.part.backward_s - m.backward_s) +
                   kBalance * (weight(load) + weight(c.part));
    if (const double columns = load.columns + c.part.columns; columns > m.columns)
      delay += problem_.exchange_s(columns) - exchange;
    const int64_t over = load.bytes + c.part.bytes - problem_.bytes_per_rank;
    if (over > 0) delay += 1e6 + static_cast<double>(over) / 1e9;
    delays.emplace_back(delay, static_cast<int32_t>(r));
  }
  std::partial_sort(delays.begin(), delays.begin() + static_cast<std::ptrdiff_t>(parts),
                    delays.end());
  place.ranks.resize(parts);
  for (size_t i = 0; i < parts; ++i) place.ranks[i] = delays[i].second;
  std::sort(place.ranks.begin(), place.ranks.end());
  return place;
}

void PlacementState::insert(size_t table, bool whole_only) {
  TablePlace best;
  double least = std::numeric_limits<double>::max();
  const int64_t missing = whole_only ? missing_bytes() : 0;
  for (size_t c = 0; c < problem_.tables[table].choices.size(); ++c) {
    TablePlace place = best_place(table, c);
    put(table, place);
    const double found = score();
    const bool fits = missing_bytes() <= missing;
    remove(table);
    if (found < least) {
      least = found;
      best = std::move(place);
    }
    if (whole_only && fits) break;
  }
  put(table, std::move(best));
}

std::vector<size_t> PlacementState::critical_tables() const {
  const auto slowest = [&](auto load) {
    size_t most = 0;
    for (size_t r = 1; r < loads_.size(); ++r) {
      if (load(loads_[r]) > load(loads_[most])) most = r;
    }
    return static_cast<int32_t>(most);
  };
  const int32_t ranks[] = {slowest([](const RankLoad& l) { return l.forward_s; }),
                           slowest([](const RankLoad& l) { return l.backward_s; }),
                           slowest([](const RankLoad& l) { return l.columns; }),
                           slowest([](const RankLoad& l) { return static_cast<double>(l.bytes); })};
  const bool full = missing_bytes() > 0;
  std::vector<size_t> tables;
  for (size_t t = 0; t < placement_.size(); ++t) {
    const auto& places = placement_[t].ranks;
    const size_t looked_at = full ? 4 : 3;
    if (std::any_of(ranks, ranks + looked_at, [&](int32_t rank) {
          return std::find(places.begin(), places.end(), rank) != places.end();
        }))
      tables.push_back(t);
  }
  return tables;
}

}  // namespace tilecast
