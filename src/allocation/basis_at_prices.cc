// A basis from prices. With the right price of a GPU of each kind, the program falls apart into one
// for each job (the Lagrangian of the kinds' rows): a job takes what has the highest worth less
// price of time, and gets at least its demand. That is one of its columns, for as long as its
// demand takes or for all the time, or two columns in turns. The few jobs that divide what is left
// of a kind are those that hardly prefer one of two ways. So a basis at nearly right prices is
// nearly the best one: the simplex method needs some hundred steps instead of two for each job.
// Prices that are far off cost time only, never the optimum.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "allocation/shares_program.h"

namespace tilecast {
namespace {

using Basis = LinearProgram::Basis;
using Status = LinearProgram::Status;

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr double kNoPrice = 1e-12;  // of objectives near 1

/// What a job does. With one column its time or its demand may be what binds it, with two both are.
struct Plan {
  size_t first = kNone, second = kNone;
  bool all_time = false;
  double worth = 0;      ///< less price
  double of_demand = 0;  ///< by how much the worth falls with one more of the demand
  double of_time = 0;    ///< by how much it rises with more time
};

/// A change of a job's plan that hardly matters, between two kinds or a kind and none.
struct Change {
  double loss = kNoEnd;  ///< relative to the price
  size_t column = kNone;
  int row = -1;  ///< instead of a column
};

class PricedBasis {
 public:
  PricedBasis(const AllocationProblem& problem, const SharesProgram& shares,
              const std::vector<double>& objective, const PoolPrices& prices)
      : problem_(problem),
        shares_(shares),
        objective_(objective),
        prices_(prices),
        none_(problem.kinds.size()),
        changes_((none_ + 1) * (none_ + 1)) {
    basis_.columns.assign(shares.program.columns(), Status::kAtLow);
    basis_.rows.assign(shares.program.rows(), Status::kAtHigh);
    for (const int row : shares.demand_rows)
      if (row >= 0) at(row) = Status::kAtLow;
    std::vector<std::vector<size_t>> columns(problem.jobs.size());
    for (size_t c = 0; c < problem.columns.size(); ++c)
      columns[problem.columns[c].parts[0].job].push_back(c);
    for (size_t j = 0; j < columns.size(); ++j) add_job(j, columns[j]);
    add_kinds();
  }

  Basis take() { return std::move(basis_); }

 private:
  Status& at(int row) { return basis_.rows[static_cast<size_t>(row)]; }
  double price(size_t column) const {
    double sum = 0;
    for (const auto& [kind, gpus] : problem_.columns[column].uses)
      sum += gpus * prices_.kinds[kind];
    return sum;
  }
  double gain(size_t column) const { return objective_[column] - price(column); }
  /// The kind that a column pays most for; without a price as `none_`.
  size_t kind_of(size_t column) const {
    size_t most = none_;
    double highest = kNoPrice;
    for (const auto& [kind, gpus] : problem_.columns[column].uses)
      if (gpus * prices_.kinds[kind] > highest) {
        highest = gpus * prices_.kinds[kind];
        most = kind;
      }
    return most;
  }

  Plan best_plan(size_t job, const std::vector<size_t>& columns) const {
    const double time = problem_.jobs[job].count;
    const bool asked = shares_.demand_rows[job] >= 0;
    const double demand = asked ? prices_.least : 0;
    Plan best{.worth = asked ? -kNoEnd : 0};
    const auto take = [&](const Plan& plan) {
      if (plan.worth > best.worth) best = plan;
    };
    for (const size_t c : columns) {
      const double speed = shares_.of_demand[c];
      if (speed * time < demand) continue;
      take({.first = c, .all_time = true, .worth = gain(c) * time, .of_time = gain(c)});
      if (asked && demand > 0)
        take({.first = c, .worth = gain(c) * demand / speed, .of_demand = -gain(c) / speed});
    }
    for (const size_t slow : columns)
      for (const size_t fast : columns) {
        const double low = shares_.of_demand[slow], high = shares_.of_demand[fast];
        if (low * time >= demand || high * time < demand) continue;
        const double slope = (gain(fast) - gain(slow)) / (high - low);
        take({.first = slow,
              .second = fast,
              .worth = gain(slow) * time + slope * (demand - low * time),
              .of_demand = -slope,
              .of_time = gain(slow) - slope * low});
      }
    if (best.worth > -kNoEnd) return best;
    for (const size_t c : columns)  // too slow for the demand: the fastest, all the time
      if (best.first == kNone || shares_.of_demand[c] > shares_.of_demand[best.first])
        best = {.first = c, .all_time = true};
    return best;
  }

  void add_job(size_t j, const std::vector<size_t>& columns) {
    const int job_row = shares_.job_rows[j], demand_row = shares_.demand_rows[j];
    const Plan plan = best_plan(j, columns);
    if (plan.first != kNone) basis_.columns[plan.first] = Status::kBasic;
    if (plan.second != kNone) basis_.columns[plan.second] = Status::kBasic;
    const bool has_time = plan.second == kNone && !plan.all_time;
    if (has_time) at(job_row) = Status::kBasic;
    if (plan.all_time && demand_row >= 0) at(demand_row) = Status::kBasic;
    const size_t kind = plan.first == kNone ? none_ : kind_of(plan.first);
    for (const size_t c : columns)
      if (c != plan.first && c != plan.second)
        offer(kind, kind_of(c), price(c),
              {.loss = std::abs(plan.of_time - gain(c) - plan.of_demand * shares_.of_demand[c]),
               .column = c});
    if (plan.first == kNone || plan.second != kNone) return;
    if (plan.all_time)
      offer(kind, none_, price(plan.first), {.loss = std::abs(plan.of_time), .row = job_row});
    else
      offer(kind, none_, price(plan.first),
            {.loss = std::abs(plan.of_demand) * shares_.of_demand[plan.first], .row = demand_row});
  }

  void offer(size_t a, size_t b, double price, Change change) {
    if (a == b) return;
    change.loss /= price + kNoPrice;
    Change& best = changes_[std::min(a, b) * (none_ + 1) + std::max(a, b)];
    if (change.loss < best.loss) best = change;
  }

  /// Each kind with a price is in use to the last GPU, which takes a variable more: changes of
  /// plans that join the kinds, and what is free, as a tree, those with the least loss first
  /// (Kruskal). The least speed, where it is the objective, is one of these variables.
  void add_kinds() {
    std::vector<size_t> up(none_ + 1);
    std::iota(up.begin(), up.end(), size_t{0});
    const auto root = [&](size_t node) {
      while (up[node] != node) node = up[node];
      return node;
    };
    size_t wanted = 0;
    for (size_t k = 0; k < none_; ++k) {
      const bool priced = prices_.kinds[k] > kNoPrice;
      at(shares_.kind_rows[k]) = priced ? Status::kAtHigh : Status::kBasic;
      wanted += priced ? 1 : 0;
    }
    const bool of_least = objective_.back() > 0;
    if (of_least) {
      basis_.columns.back() = Status::kBasic;
      wanted -= std::min<size_t>(wanted, 1);
    }
    std::vector<size_t> order(changes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return changes_[a].loss < changes_[b].loss; });
    for (const size_t i : order) {
      const Change& change = changes_[i];
      const size_t a = root(i / (none_ + 1)), b = root(i % (none_ + 1));
      if (wanted == 0 || change.loss == kNoEnd) break;
      if (a == b) continue;
      up[a] = b;
      --wanted;
      (change.row >= 0 ? at(change.row) : basis_.columns[change.column]) = Status::kBasic;
    }
  }

  const AllocationProblem& problem_;
  const SharesProgram& shares_;
  const std::vector<double>& objective_;
  const PoolPrices& prices_;
  size_t none_;                  ///< stands for no kind: the number of kinds
  std::vector<Change> changes_;  ///< by two kinds, the lower first: the one with the least loss
  Basis basis_;
};

/// The job whose demand is highest for its speed, and its fastest column.
std::pair<size_t, size_t> slowest_job(const AllocationProblem& problem,
                                      const SharesProgram& shares) {
  std::vector<size_t> fastest(problem.jobs.size(), kNone);
  for (size_t c = 0; c < problem.columns.size(); ++c) {
    size_t& best = fastest[problem.columns[c].parts[0].job];
    if (best == kNone || shares.of_demand[c] > shares.of_demand[best]) best = c;
  }
  const auto speed = [&](size_t j) { return shares.of_demand[fastest[j]] * problem.jobs[j].count; };
  size_t slowest = kNone;
  for (size_t j = 0; j < fastest.size(); ++j)
    if (shares.demand_rows[j] >= 0 && fastest[j] != kNone &&
        (slowest == kNone || speed(j) < speed(slowest)))
      slowest = j;
  return {slowest, slowest == kNone ? kNone : fastest[slowest]};
}

}  // namespace

LinearProgram::Basis basis_of_least(const AllocationProblem& problem, const SharesProgram& shares,
                                    const PoolPrices& prices, const PoolPrices& then) {
  const bool priced = std::any_of(prices.kinds.begin(), prices.kinds.end(),
                                  [](double price) { return price > kNoPrice; });
  if (priced) return basis_at_prices(problem, shares, shares.least, prices);
  Basis basis = basis_at_prices(problem, shares, shares.throughput,
                                {.kinds = then.kinds, .least = prices.least});
  const auto [job, column] = slowest_job(problem, shares);
  if (job == kNone) return basis;
  for (size_t c = 0; c < problem.columns.size(); ++c)
    if (problem.columns[c].parts[0].job == job) basis.columns[c] = Status::kAtLow;
  basis.columns[column] = basis.columns.back() = Status::kBasic;
  basis.rows[static_cast<size_t>(shares.job_rows[job])] = Status::kAtHigh;
  basis.rows[static_cast<size_t>(shares.demand_rows[job])] = Status::kAtLow;
  return basis;
}

Basis basis_at_prices(const AllocationProblem& problem, const SharesProgram& shares,
                      const std::vector<double>& objective, const PoolPrices& prices) {
  return PricedBasis(problem, shares, objective, prices).take();
}

}  // namespace tilecast
