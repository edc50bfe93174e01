#include "plan/training_ranking.h"

#include <algorithm>
#include <array>
#include <limits>

#include "schema/plan_options.h"

namespace tilecast {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();

/// Times that differ by less may be in the other order, where the interval is not narrower still.
/// Two layouts on the same GPUs share most of their errors: published runs of Megatron-LM in
/// different layouts are forecast from 7 % too slow to 5 % too fast (research/plan/choices.md).
constexpr double kLayoutError = 0.05;

using Indices = std::vector<size_t>;
using Degrees = std::array<int64_t, 5>;

Degrees degrees_of(const TrainingCandidate& c) { return {c.dp, c.tp, c.pp, c.cp, c.ep}; }

class Ranking {
 public:
  Ranking(TrainingSearch& search, const TrainingQuery& query, TrainingPlan& plan)
      : search_(search), query_(query), all_(plan.candidates), plan_(plan) {}

  void run(const HighOf& high_of) {
    if (query_.pruning == Pruning::kOff) search_.simulate(first(plan_.fitting));
    const std::map<Degrees, size_t> best = fastest_layouts(std::max<size_t>(1, query_.top));
    if (best.empty()) return;
    std::vector<size_t> order;
    for (const auto& [degrees, index] : best) order.push_back(index);
    std::stable_sort(order.begin(), order.end(), by_time());
    const TrainingCandidate& fastest = all_[order.front()];
    plan_.fastest_s = *fastest.latency_s;
    plan_.fastest = fastest;
    plan_.tie_ratio = std::min(kLayoutError, high_of(fastest) / plan_.fastest_s - 1);
    set_order(rows_of(order));
  }

 private:
  /// A layout of the ranking.
  struct Row {
    size_t index = 0;
    int64_t step = 1;  ///< rows of one step tie
    int64_t alike = 0;
  };

  static Indices first(size_t count) {
    Indices indices(count);
    for (size_t i = 0; i < count; ++i) indices[i] = i;
    return indices;
  }

  std::function<bool(size_t, size_t)> by_time() const {
    return [this](size_t a, size_t b) { return time_of(a) < time_of(b); };
  }
  double time_of(size_t i) const { return all_[i].latency_s.value_or(kNoTime); }

  /// Simulates candidates in the order of bounds, a few at a time, until a bound is above `limit`;
  /// calls `seen` for each that was simulated. `useful` says which are worth it.
  template <typename Limit, typename Useful, typename Seen>
  void simulate_until(const Indices& order, const Limit& limit, const Useful& useful,
                      const Seen& seen) {
    constexpr size_t kBatch = 8;  // whatever the number of threads, so that results are the same
    size_t next = 0;
    while (next < order.size() && all_[order[next]].bound_s <= limit()) {
      Indices batch;
      for (; next < order.size() && batch.size() < kBatch; ++next) {
        const TrainingCandidate& c = all_[order[next]];
        if (c.bound_s > limit()) break;
        if (useful(c)) batch.push_back(order[next]);
      }
      search_.simulate(batch);
      for (const size_t i : batch) {
        if (all_[i].latency_s) seen(i);
      }
    }
  }

  /// The fastest candidate of each of the `wanted` fastest layouts.
  std::map<Degrees, size_t> fastest_layouts(size_t wanted) {
    std::map<Degrees, size_t> best;
    const auto limit = [&] {
      if (best.size() < wanted) return kNoTime;
      std::vector<double> times;
      for (const auto& [degrees, index] : best) times.push_back(time_of(index));
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(wanted - 1),
                       times.end());
      return times[wanted - 1];
    };
    const auto useful = [&](const TrainingCandidate& c) {
      const auto known = best.find(degrees_of(c));
      return known == best.end() || c.bound_s < time_of(known->second);
    };
    simulate_until(first(plan_.fitting), limit, useful, [&](size_t i) {
      const auto [known, fresh] = best.emplace(degrees_of(all_[i]), i);
      if (!fresh && time_of(i) < time_of(known->second)) known->second = i;
    });
    const double last = limit();
    std::erase_if(best, [&](const auto& entry) { return time_of(entry.second) > last; });
    return best;
  }

  /// The fastest of the simplest candidates that take at most `limit_s`, among those of `wanted`.
  template <typename Wanted>
  std::optional<size_t> simplest(double limit_s, const Wanted& wanted) {
    std::map<int, Indices> classes;  // by rising number of techniques, in the order of bounds
    for (size_t i = 0; i < plan_.fitting; ++i) {
      if (all_[i].bound_s <= limit_s && wanted(all_[i])) classes[techniques(all_[i])].push_back(i);
    }
    for (const auto& [count, order] : classes) {
      std::optional<size_t> best;
      const auto limit = [&] { return best ? time_of(*best) : limit_s; };
      simulate_until(
          order, limit, [](const TrainingCandidate&) { return true; },
          [&](size_t i) {
            if (time_of(i) <= limit_s && (!best || time_of(i) < time_of(*best))) best = i;
          });
      if (best) return best;
    }
    return std::nullopt;
  }

  /// `order`: the fastest of each layout, by time.
  std::vector<Row> rows_of(const Indices& order) {
    std::vector<Row> rows;
    double limit_s = 0;
    int64_t step = 0;
    const auto add = [&](size_t index) {
      rows.push_back({index, step, alike(all_[index], limit_s)});
    };
    for (const size_t fastest : order) {
      const Degrees degrees = degrees_of(all_[fastest]);
      if (time_of(fastest) > limit_s || step == 0) {
        limit_s = time_of(fastest) * (1 + plan_.tie_ratio);
        if (++step == 1) add(*simplest(limit_s, [](const TrainingCandidate&) { return true; }));
      }
      if (degrees == degrees_of(all_[rows.front().index])) continue;
      add(*simplest(limit_s, [&](const TrainingCandidate& c) { return degrees_of(c) == degrees; }));
    }
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      const auto key = [&](const Row& row) {
        return std::tuple(row.step, techniques(all_[row.index]), time_of(row.index));
      };
      return key(a) < key(b);
    });
    if (rows.size() > query_.top) rows.resize(std::max<size_t>(1, query_.top));
    return rows;
  }

  /// Other candidates of the same degrees that may be as fast.
  int64_t alike(const TrainingCandidate& c, double limit_s) const {
    return std::count_if(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(plan_.fitting),
                         [&](const TrainingCandidate& other) {
                           return degrees_of(other) == degrees_of(c) && other.bound_s <= limit_s;
                         }) -
           1;
  }

  /// The rows first, then what else was simulated by time, then the others by their bounds.
  void set_order(const std::vector<Row>& rows) {
    std::vector<TrainingCandidate> sorted;
    std::vector<bool> taken(plan_.fitting, false);
    for (const Row& row : rows) {
      taken[row.index] = true;
      sorted.push_back(all_[row.index]);
      sorted.back().step = row.step;
      sorted.back().alike = row.alike;
    }
    plan_.ranked = sorted.size();
    Indices rest;
    for (size_t i = 0; i < plan_.fitting; ++i) {
      if (!taken[i]) rest.push_back(i);
    }
    std::stable_sort(rest.begin(), rest.end(), by_time());
    for (const size_t i : rest) sorted.push_back(all_[i]);
    std::move(sorted.begin(), sorted.end(), all_.begin());
  }

  TrainingSearch& search_;
  const TrainingQuery& query_;
  std::vector<TrainingCandidate>& all_;
  TrainingPlan& plan_;
};

/// Another value of an option than the first candidate's, and its candidates.
struct OtherValue {
  const char* option;
  std::string value;
  Indices fitting;  ///< in the order of bounds
  size_t next = 0;
  size_t best = 0;  ///< the fastest so far, or what misses least memory
};

std::vector<OtherValue> other_values(const TrainingPlan& plan) {
  const std::vector<TrainingCandidate>& all = plan.candidates;
  std::vector<OtherValue> others;
  for (const TrainingOption& option : training_plan_options()) {
    const std::string own = option.value(all.front());
    std::map<std::string, OtherValue> by_value;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string value = option.value(all[i]);
      if (value == own) continue;
      const auto [known, fresh] =
          by_value.try_emplace(value, OtherValue{option.name, value, {}, 0, i});
      if (i < plan.fitting) known->second.fitting.push_back(i);
    }
    for (auto& [value, other] : by_value) others.push_back(std::move(other));
  }
  return others;
}

}  // namespace

int techniques(const TrainingCandidate& c) {
  return (c.tp > 1) + (c.pp > 1) + (c.virtual_stages > 1) + splits_backward(c.schedule) +
         (c.cp > 1) + (c.ep > 1) + (c.zero != Zero::kNone) +
         (c.checkpointing != Checkpointing::kNone);
}

void rank_by_time(TrainingSearch& search, const TrainingQuery& query, const HighOf& high_of,
                  TrainingPlan& plan) {
  Ranking(search, query, plan).run(high_of);
}

void rank_by_memory(TrainingSearch& search, const TrainingQuery& query, TrainingPlan& plan) {
  const auto begin = plan.candidates.begin();
  std::stable_sort(begin, begin + static_cast<std::ptrdiff_t>(plan.fitting),
                   [](const TrainingCandidate& a, const TrainingCandidate& b) {
                     return std::pair(a.memory.peak_bytes, a.bound_s) <
                            std::pair(b.memory.peak_bytes, b.bound_s);
                   });
  Indices wanted;
  for (size_t i = 0; i < std::min(std::max<size_t>(1, query.top), plan.fitting); ++i)
    wanted.push_back(i);
  search.simulate(wanted);
  while (plan.ranked < wanted.size() && plan.candidates[plan.ranked].latency_s) ++plan.ranked;
}

/// All values advance together: a round simulates the next candidate of each whose bound is below
/// the best time so far.
void find_alternatives(TrainingSearch& search, const TrainingQuery& query, TrainingPlan& plan) {
  const std::vector<TrainingCandidate>& all = plan.candidates;
  std::vector<OtherValue> others = other_values(plan);
  const auto time_of = [&](size_t i) { return all[i].latency_s.value_or(kNoTime); };
  for (OtherValue& other : others) {
    if (query.objective == PlanObjective::kMemory && other.fitting.size() > 1)
      other.fitting = {other.fitting.front()};
    std::stable_sort(other.fitting.begin(), other.fitting.end(),
                     [&](size_t a, size_t b) { return all[a].bound_s < all[b].bound_s; });
  }
  for (bool more = true; more;) {
    Indices round;
    for (OtherValue& other : others) {
      if (other.next == other.fitting.size() ||
          all[other.fitting[other.next]].bound_s >= time_of(other.best))
        continue;
      round.push_back(other.fitting[other.next]);
    }
    more = !round.empty();
    search.simulate(round);
    for (OtherValue& other : others) {
      if (other.next == other.fitting.size() ||
          all[other.fitting[other.next]].bound_s >= time_of(other.best))
        continue;
      const size_t i = other.fitting[other.next++];
      if (time_of(i) < time_of(other.best)) other.best = i;
    }
  }
  // The best of each option first; what does not fit, and so has no time, last.
  for (auto begin = others.begin(); begin != others.end();) {
    const auto end = std::find_if(begin, others.end(),
                                  [&](const OtherValue& o) { return o.option != begin->option; });
    std::stable_sort(begin, end, [&](const OtherValue& a, const OtherValue& b) {
      return time_of(a.best) < time_of(b.best);
    });
    begin = end;
  }
  for (const OtherValue& other : others)
    plan.alternatives.push_back({other.option, other.value, other.best});
}

}  // namespace tilecast
