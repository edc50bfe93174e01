#include "placement/search.h"

#include <algorithm>
#include <numeric>

#include "base/budget.h"
#include "base/rng.h"
#include "placement/state.h"

namespace tilecast {
namespace {

/// Less is no progress.
constexpr double kLeastGain = 1e-6;

std::vector<size_t> heaviest_first(const ShardProblem& problem, const PlacementState& state) {
  std::vector<size_t> order(problem.tables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return state.weight(problem.tables[a].choices.front().part) >
           state.weight(problem.tables[b].choices.front().part);
  });
  return order;
}

class Search {
 public:
  Search(const ShardProblem& problem, const SearchOptions& options)
      : problem_(problem), state_(problem), rng_(options.seed), rounds_(options.rounds) {
    if (rounds_ > 0) return;
    // About 2 s of one core for 856 tables on 128 ranks.
    constexpr double kWork = 6e8, kFewest = 200, kMost = 4000;
    const auto size = static_cast<double>(problem.tables.size()) * 8 +
                      static_cast<double>(problem.ranks) * 64 * 12;
    rounds_ = static_cast<int64_t>(std::clamp(kWork / size, kFewest, kMost));
  }

  TablePlacement run() {
    for (const size_t table : heaviest_first(problem_, state_)) state_.insert(table, true);
    improve();
    keep_best();
    for (int64_t round = 0; round < rounds_; ++round) {
      // 3 % above the best at first, then ever less.
      constexpr double kFollowed = 0.03;
      const double left = 1 - static_cast<double>(round) / static_cast<double>(rounds_);
      ruin_and_recreate(best_score_ * (1 + kFollowed * left * left));
      keep_best();
    }
    restore(best_);
    improve();
    keep_best();
    return best_;
  }

 private:
  void keep_best() {
    const double score = state_.score();
    if (!best_.empty() && score >= best_score_ * (1 - kLeastGain)) return;
    best_score_ = score;
    best_ = state_.placement();
  }

  void restore(const TablePlacement& placement) {
    for (size_t t = 0; t < placement.size(); ++t) {
      if (placement[t] == state_.placement()[t]) continue;
      state_.remove(t);
      state_.put(t, placement[t]);
    }
  }

  /// Inserts tables of the slowest ranks again, then exchanges pairs, as long as the score falls.
  void improve() {
    for (bool better = true; better;) {
      Budget::here().check("placing tables");
      better = false;
      for (const size_t table : state_.critical_tables()) {
        const double before = state_.score();
        TablePlace old = state_.placement()[table];
        state_.remove(table);
        state_.insert(table);
        if (state_.score() < before * (1 - kLeastGain)) {
          better = true;
          continue;
        }
        state_.remove(table);
        state_.put(table, std::move(old));
      }
      better = better || exchange_a_pair();
    }
  }

  /// Exchanges a whole table of a slowest rank with one of another rank.
  bool exchange_a_pair() {
    const double before = state_.score();
    for (const size_t a : state_.critical_tables()) {
      for (size_t b = 0; b < problem_.tables.size(); ++b) {
        const TablePlace first = state_.placement()[a], second = state_.placement()[b];
        if (a == b || first.ranks.size() != 1 || second.ranks.size() != 1 ||
            first.ranks == second.ranks)
          continue;
        swap(a, b);
        if (state_.score() < before * (1 - kLeastGain)) return true;
        swap(a, b);
      }
    }
    return false;
  }

  void swap(size_t a, size_t b) {
    TablePlace first = state_.placement()[a], second = state_.placement()[b];
    state_.remove(a);
    state_.remove(b);
    std::swap(first.ranks, second.ranks);
    state_.put(a, std::move(first));
    state_.put(b, std::move(second));
  }

  void ruin_and_recreate(double followed) {
    const size_t tables = problem_.tables.size();
    constexpr size_t kMostRemoved = 8;
    const size_t count = 1 + rng_.below(std::min(tables, kMostRemoved));
    std::vector<std::pair<size_t, TablePlace>> removed;
    const auto remove = [&](size_t table) {
      if (!state_.is_placed(table)) return;
      removed.emplace_back(table, state_.placement()[table]);
      state_.remove(table);
    };
    const std::vector<size_t> critical = state_.critical_tables();
    for (size_t i = 0; i < count; ++i)
      remove(i % 2 == 0 && !critical.empty() ? critical[rng_.below(critical.size())]
                                             : rng_.below(tables));
    std::vector<size_t> order;
    for (const auto& [table, place] : removed) order.push_back(table);
    std::sort(order.begin(), order.end());
    rng_.shuffle(order);
    for (const size_t table : order) {
      // Now and then in any way, to get out of local minima.
      constexpr uint64_t kRarely = 8;
      if (rng_.below(kRarely) == 0) {
        const size_t choice = rng_.below(problem_.tables[table].choices.size());
        state_.put(table, state_.best_place(table, choice));
      } else {
        state_.insert(table);
      }
    }
    if (state_.score() <= followed) return;
    for (const auto& [table, place] : removed) {
      state_.remove(table);
      state_.put(table, place);
    }
  }

  const ShardProblem& problem_;
  PlacementState state_;
  Rng rng_;
  int64_t rounds_;
  TablePlacement best_;
  double best_score_ = 0;
};

}  // namespace

TablePlacement search_placement(const ShardProblem& problem, const SearchOptions& options) {
  return Search(problem, options).run();
}

TablePlacement place_by_rule(const ShardProblem& problem, Rule rule) {
  PlacementState state(problem);
  const auto size = [&](const TableShard& part) {
    return rule == Rule::kSize      ? static_cast<double>(part.bytes)
           : rule == Rule::kLookups ? part.lookups
                                    : state.weight(part);
  };
  std::vector<size_t> order(problem.tables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size(problem.tables[a].choices.front().part) >
           size(problem.tables[b].choices.front().part);
  });
  std::vector<double> sums(static_cast<size_t>(problem.ranks), 0);
  for (const size_t t : order) {
    const std::vector<ShardChoice>& choices = problem.tables[t].choices;
    std::optional<size_t> least;
    for (size_t r = 0; r < sums.size(); ++r) {
      if (state.loads()[r].bytes + choices.front().part.bytes > problem.bytes_per_rank) continue;
      if (!least || sums[r] < sums[*least]) least = r;
    }
    TablePlace place{.choice = 0, .ranks = {}};
    if (least) {
      place.ranks = {static_cast<int32_t>(*least)};
    } else {
      for (size_t c = 0; c < choices.size(); ++c) {
        if (choices[c].way == ShardWay::kRowWise && choices[c].parts == problem.ranks)
          place.choice = c;
      }
      place = state.best_place(t, place.choice);
    }
    for (const int32_t rank : place.ranks)
      sums[static_cast<size_t>(rank)] += size(choices[place.choice].part);
    state.put(t, std::move(place));
  }
  return state.placement();
}

}  // namespace tilecast
