#include "allocation/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "allocation/linear_program.h"
#include "allocation/shares_program.h"
#include "base/budget.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;

/// Seconds of a job's steps in a column of its own.
double seconds_of(const AllocationProblem& problem, const Column& column) {
  return problem.jobs[column.parts[0].job].steps / column.parts[0].steps_per_s;
}

/// Whether the column can run a job to its end by itself.
bool runs_alone(const AllocationProblem& problem, const Column& column) {
  return column.parts.size() == 1 && column.uses.size() == 1 && column.parts[0].steps_per_s > 0 &&
         problem.jobs[column.parts[0].job].steps > 0;
}

/// A program with a choice for each column that runs a job alone. Times are in units of the
/// longest.
class QueueProgram {
 public:
  explicit QueueProgram(const AllocationProblem& problem)
      : problem_(problem), job_rows_(problem.jobs.size(), -1) {
    for (size_t c = 0; c < problem.columns.size(); ++c) {
      const Column& column = problem.columns[c];
      if (!runs_alone(problem, column)) continue;
      unit_s_ = std::max(unit_s_, seconds_of(problem, column));
      int& row = job_rows_[column.parts[0].job];
      if (row < 0) row = program.add_row(1, 1);
    }
    for (size_t k = 0; k < problem.kinds.size(); ++k)
      load_rows_.push_back(program.add_row(-LinearProgram::kNoLimit, 0));
  }

  struct Choice {
    size_t column;
    bool on_time;
  };

  /// `more`: entries beside those of the job and of its kind's load.
  void add(const Choice& choice, std::vector<LinearProgram::Entry> more) {
    const Column& column = problem_.columns[choice.column];
    more.push_back({job_rows_[column.parts[0].job], 1});
    more.push_back({load_rows_[column.uses[0].kind], gpu_time(choice.column)});
    program.add_column(0, 1, more, LinearProgram::Values::kWhole);
    choices.push_back(choice);
  }
  /// The last variable: the time until all kinds are done.
  void add_end() {
    std::vector<LinearProgram::Entry> entries;
    for (size_t k = 0; k < load_rows_.size(); ++k)
      entries.push_back({load_rows_[k], -problem_.kinds[k].gpus});
    double longest = 0;  // no job takes less than on its fastest GPUs
    std::vector<double> shortest(problem_.jobs.size(), kNoEnd);
    for (const Choice& choice : choices) {
      double& time = shortest[problem_.columns[choice.column].parts[0].job];
      time = std::min(time, seconds_of(problem_, problem_.columns[choice.column]) / unit_s_);
    }
    for (const double time : shortest)
      if (time < kNoEnd) longest = std::max(longest, time);
    for (const int row : longer_rows) entries.push_back({row, -1});
    program.add_column(longest, LinearProgram::kNoLimit, entries);
  }

  double gpu_time(size_t column) const {
    return problem_.columns[column].uses[0].gpus * time(column);
  }
  double time(size_t column) const {
    return seconds_of(problem_, problem_.columns[column]) / unit_s_;
  }
  double unit_s() const { return unit_s_; }

  /// An objective with a value for each choice, and one for the end.
  template <typename Value>
  std::vector<double> objective(const Value& value, double end = 0) const {
    std::vector<double> factors;
    for (const Choice& choice : choices) factors.push_back(value(choice));
    factors.push_back(end);
    return factors;
  }

  /// What was chosen, jobs with a lower `rank` first.
  template <typename Rank>
  std::vector<TimedWork> order(const LinearProgram::Solution& solution, const Rank& rank) const {
    std::vector<Choice> chosen;
    for (size_t i = 0; i < choices.size(); ++i)
      if (solution.values[i] > 0.5) chosen.push_back(choices[i]);
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](const Choice& a, const Choice& b) { return rank(a) < rank(b); });
    std::vector<TimedWork> order;
    for (const Choice& choice : chosen)
      order.push_back({choice.column, seconds_of(problem_, problem_.columns[choice.column])});
    return order;
  }

  LinearProgram program;
  std::vector<Choice> choices;
  std::vector<int> longer_rows;  ///< a chosen job's time <= the end

 private:
  const AllocationProblem& problem_;
  double unit_s_ = 0;
  std::vector<int> job_rows_, load_rows_;
};

/// What an order of work is worth: the lower the better, the first number before the second.
using OrderScore = std::array<double, 2>;

bool is_lower(const OrderScore& a, const OrderScore& b) {
  constexpr double kSame = 1e-9;
  for (size_t i = 0; i < a.size(); ++i) {
    const double same = kSame * std::max(std::abs(a[i]), std::abs(b[i]));
    if (a[i] < b[i] - same) return true;
    if (a[i] > b[i] + same) return false;
  }
  return false;
}

/// The program knows how long a kind's GPUs are busy, not which job each of them has: the order in
/// which they take the work, and its places, become better by single changes until none helps or
/// `wanted` is reached. Any schedule has an order, that of its begins, which ends no job later.
template <typename Score>
class OrderSearch {
 public:
  OrderSearch(const AllocationProblem& problem, std::vector<TimedWork> order, const Score& score,
              double wanted)
      : problem_(problem), order_(std::move(order)), score_(score), wanted_(wanted) {
    columns_.resize(problem.jobs.size());
    for (size_t c = 0; c < problem.columns.size(); ++c)
      if (runs_alone(problem, problem.columns[c]))
        columns_[problem.columns[c].parts[0].job].push_back(c);
    placements_ = run_in_order(problem, order_, 0);
    best_ = score_(placements_);
    constexpr double kMostSteps = 2e6;  // half a second
    double size = static_cast<double>(order_.size());
    for (const AllocationProblem::Kind& kind : problem.kinds) size += kind.gpus;
    tries_ = static_cast<int64_t>(kMostSteps / size);
  }

  std::vector<TimedColumn> run() {
    while (!ended() && (change_place() || change_turn())) continue;
    return placements_;
  }

 private:
  bool ended() const { return tries_ <= 0 || best_[0] <= wanted_; }

  bool keep(std::vector<TimedWork> order) {
    Budget::here().check("allocating jobs");
    --tries_;
    std::vector<TimedColumn> placements = run_in_order(problem_, order, 0);
    const OrderScore score = score_(placements);
    if (!is_lower(score, best_)) return false;
    best_ = score;
    order_ = std::move(order);
    placements_ = std::move(placements);
    return true;
  }

  bool change_place() {
    for (size_t i = 0; i < order_.size(); ++i)
      for (const size_t c : columns_[problem_.columns[order_[i].column].parts[0].job]) {
        if (c == order_[i].column) continue;
        std::vector<TimedWork> order = order_;
        order[i] = {c, seconds_of(problem_, problem_.columns[c])};
        if (keep(std::move(order))) return true;
        if (ended()) return false;
      }
    return false;
  }

  /// Two jobs change turns, or one goes to another turn.
  bool change_turn() {
    for (size_t i = 0; i < order_.size(); ++i)
      for (size_t j = i + 1; j < order_.size(); ++j)
        for (const int way : {0, 1, 2}) {
          std::vector<TimedWork> order = order_;
          const auto first = order.begin() + static_cast<std::ptrdiff_t>(i),
                     last = order.begin() + static_cast<std::ptrdiff_t>(j);
          if (way == 0) std::swap(*first, *last);
          if (way == 1) std::rotate(first, first + 1, last + 1);
          if (way == 2) std::rotate(first, last, last + 1);
          if (keep(std::move(order))) return true;
          if (ended()) return false;
        }
    return false;
  }

  const AllocationProblem& problem_;
  std::vector<TimedWork> order_;
  const Score& score_;
  double wanted_;                             ///< of the first number
  std::vector<std::vector<size_t>> columns_;  ///< by job
  std::vector<TimedColumn> placements_;
  OrderScore best_{};
  int64_t tries_ = 0;
};

double last_end(const std::vector<TimedColumn>& placements) {
  double end = 0;
  for (const TimedColumn& placement : placements) end = std::max(end, placement.end_s);
  return end;
}

/// Throws for so many deadlines that Cbc takes minutes and gigabytes: a job has an entry for each
/// later deadline on each kind.
void check_size(const AllocationProblem& problem) {
  constexpr size_t kMostEntries = 4'000'000;  // a minute and 1 GB
  std::vector<double> ends;
  for (const AllocationProblem::Job& job : problem.jobs)
    if (job.deadline_s < kNoEnd) ends.push_back(job.deadline_s);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  size_t entries = 0;
  for (const Column& column : problem.columns) {
    if (!runs_alone(problem, column)) continue;
    const double deadline_s = problem.jobs[column.parts[0].job].deadline_s;
    entries += static_cast<size_t>(
        std::distance(std::lower_bound(ends.begin(), ends.end(), deadline_s), ends.end()));
  }
  if (entries > kMostEntries)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("with `whole`, the solver takes no {} jobs with {} different deadlines "
                            "and {} places: give fewer jobs, round their deadlines so that more "
                            "are equal, or leave out `whole`",
                            problem.jobs.size(), ends.size(), problem.columns.size()));
}

/// No schedule ends before this: jobs are whole, so that two GPUs take no three equal jobs in 1.5
/// times the time of one. Of those jobs that nowhere take less than some time (the longest, in the
/// order of their shortest times), a kind's GPU does at most end / (the least time of these on it)
/// by an end, rounded down.
double end_by_counts(const AllocationProblem& problem) {
  std::map<size_t, std::vector<double>> by_job;  // seconds by kind
  std::vector<double> shortest(problem.jobs.size(), kNoEnd);
  for (const Column& column : problem.columns) {
    if (!runs_alone(problem, column)) continue;
    const size_t job = column.parts[0].job;
    auto& times = by_job.try_emplace(job, problem.kinds.size(), kNoEnd).first->second;
    const double seconds = seconds_of(problem, column);
    times[column.uses[0].kind] = std::min(times[column.uses[0].kind], seconds);
    shortest[job] = std::min(shortest[job], seconds);
  }
  std::vector<size_t> order;
  for (const auto& [job, times] : by_job) order.push_back(job);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shortest[a] > shortest[b]; });
  constexpr double kRounding = 1e-9;
  std::vector<double> least(problem.kinds.size(), kNoEnd);
  double end = 0;
  for (size_t count = 1; count <= order.size(); ++count) {
    for (size_t k = 0; k < least.size(); ++k)
      least[k] = std::min(least[k], by_job[order[count - 1]][k]);
    const auto done_by = [&](double time) {
      double jobs = 0;
      for (size_t k = 0; k < least.size(); ++k)
        if (least[k] < kNoEnd)
          jobs += problem.kinds[k].gpus * std::floor(time / least[k] + kRounding);
      return jobs;
    };
    const auto wanted = static_cast<double>(count);
    if (done_by(end) >= wanted) continue;
    double low = end, high = std::max(end, shortest[order[count - 1]]);
    while (done_by(high) < wanted) high *= 2;
    constexpr int kHalvings = 60;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (done_by(middle) < wanted ? low : high) = middle;
    }
    end = low;
  }
  return end;
}

/// Of the solver's tolerance.
constexpr double kSolverRounding = 2e-6;

double deadline_of(const AllocationProblem& problem, size_t column) {
  return problem.jobs[problem.columns[column].parts[0].job].deadline_s;
}

/// A choice for each column, and one in time where it has a deadline.
void add_by_deadline(const AllocationProblem& problem, QueueProgram& queue) {
  const auto deadline = [&](size_t column) { return deadline_of(problem, column); };
  // Up to each deadline a kind's GPUs have time for the jobs that are due by then. Of those that
  // take more than half of it, each GPU does one.
  struct DueRows {
    int time = -1, long_jobs = -1;
  };
  std::map<std::pair<size_t, double>, DueRows> due;
  for (size_t c = 0; c < problem.columns.size(); ++c) {
    if (!runs_alone(problem, problem.columns[c]) || deadline(c) == kNoEnd) continue;
    const size_t kind = problem.columns[c].uses[0].kind;
    const auto [at, is_new] = due.try_emplace({kind, deadline(c)});
    if (!is_new) continue;
    const double gpus = problem.kinds[kind].gpus;
    at->second = {
        queue.program.add_row(-LinearProgram::kNoLimit, gpus * deadline(c) / queue.unit_s()),
        queue.program.add_row(-LinearProgram::kNoLimit, gpus)};
  }
  for (size_t c = 0; c < problem.columns.size(); ++c) {
    const Column& column = problem.columns[c];
    if (!runs_alone(problem, column)) continue;
    queue.add({c, false}, {});
    if (deadline(c) == kNoEnd || seconds_of(problem, column) > deadline(c)) continue;
    std::vector<LinearProgram::Entry> entries;
    const size_t kind = column.uses[0].kind;
    for (auto at = due.lower_bound({kind, deadline(c)}); at != due.end() && at->first.first == kind;
         ++at) {
      entries.push_back({at->second.time, queue.gpu_time(c)});
      constexpr double kMoreThanHalf = 0.5 * (1 + 1e-9);
      if (seconds_of(problem, column) > kMoreThanHalf * at->first.second)
        entries.push_back({at->second.long_jobs, column.uses[0].gpus});
    }
    queue.add({c, true}, entries);
  }
}

/// The weights of the jobs that end by their deadlines.
double met_weights(const AllocationProblem& problem, const std::vector<TimedColumn>& placements) {
  constexpr double kRounding = 1e-9;
  double weights = 0;
  for (const TimedColumn& placement : placements) {
    const double deadline = deadline_of(problem, placement.column);
    if (deadline < kNoEnd && placement.end_s <= deadline * (1 + kRounding))
      weights += problem.jobs[problem.columns[placement.column].parts[0].job].weight;
  }
  return weights;
}

double cost_of(const AllocationProblem& problem, const std::vector<TimedColumn>& placements) {
  double sum = 0;
  for (const TimedColumn& placement : placements) {
    sum += (placement.end_s - placement.begin_s) *
           cost_per_s(problem, problem.columns[placement.column]);
  }
  return sum;
}

}  // namespace

std::vector<TimedColumn> run_in_order(const AllocationProblem& problem,
                                      const std::vector<TimedWork>& order, double begin_s) {
  std::vector<std::multiset<double>> free_at(problem.kinds.size());
  for (size_t k = 0; k < problem.kinds.size(); ++k)
    for (double gpu = 1; gpu <= problem.kinds[k].gpus; ++gpu) free_at[k].insert(begin_s);
  std::vector<double> job_free_at(problem.jobs.size(), begin_s);
  std::vector<TimedColumn> placements;
  for (const auto& [c, seconds] : order) {
    const Column& column = problem.columns[c];
    std::multiset<double>& times = free_at[column.uses[0].kind];
    const auto gpus = static_cast<std::ptrdiff_t>(column.uses[0].gpus);
    const auto last = std::next(times.begin(), gpus);
    double begin = *std::prev(last);
    for (const auto& part : column.parts) begin = std::max(begin, job_free_at[part.job]);
    const double end = begin + seconds;
    times.erase(times.begin(), last);
    for (std::ptrdiff_t gpu = 0; gpu < gpus; ++gpu) times.insert(end);
    for (const auto& part : column.parts) job_free_at[part.job] = end;
    placements.push_back({.column = c, .share = 1, .begin_s = begin, .end_s = end});
  }
  return placements;
}

Allocation queue_for_makespan(const AllocationProblem& problem) {
  QueueProgram queue(problem);
  for (size_t j = 0; j < problem.jobs.size(); ++j)
    queue.longer_rows.push_back(queue.program.add_row(-LinearProgram::kNoLimit, 0));
  for (size_t c = 0; c < problem.columns.size(); ++c)
    if (runs_alone(problem, problem.columns[c]))
      queue.add({c, true}, {{queue.longer_rows[problem.columns[c].parts[0].job], queue.time(c)}});
  queue.add_end();
  const auto none = [](const auto&) { return 0.0; };
  const auto solution = queue.program.maximize({queue.objective(none, -1)}, gap_of(problem));
  if (!solution.feasible) return {.feasible = false, .proven = solution.proven, .placements = {}};
  // The longest first: the usual order for a short end.
  const std::vector<TimedWork> order = queue.order(
      solution, [&](const QueueProgram::Choice& choice) { return -queue.time(choice.column); });
  const auto score = [&](const std::vector<TimedColumn>& placements) {
    std::vector<double> ends(problem.kinds.size());
    for (const TimedColumn& placement : placements) {
      double& end = ends[problem.columns[placement.column].uses[0].kind];
      end = std::max(end, placement.end_s);
    }
    return OrderScore{last_end(placements), std::accumulate(ends.begin(), ends.end(), 0.0)};
  };
  // No schedule ends before the program's end.
  const double wanted =
      std::max(-solution.objective_values[0] * queue.unit_s(), end_by_counts(problem)) *
      (1 + kSolverRounding);
  Allocation allocation{.feasible = true, .placements = {}};
  allocation.placements = OrderSearch(problem, order, score, wanted).run();
  allocation.objective = last_end(allocation.placements);
  allocation.proven = solution.proven && allocation.objective <= wanted * (1 + gap_of(problem));
  return allocation;
}

Allocation queue_for_deadlines(const AllocationProblem& problem, ThenLeast then) {
  const auto deadline = [&](size_t column) { return deadline_of(problem, column); };
  check_size(problem);
  QueueProgram queue(problem);
  add_by_deadline(problem, queue);
  queue.add_end();
  const double heaviest = heaviest_weight(problem);
  const auto weight = [&](const QueueProgram::Choice& choice) {
    return choice.on_time
               ? problem.jobs[problem.columns[choice.column].parts[0].job].weight / heaviest
               : 0.0;
  };
  const auto cost = [&](const QueueProgram::Choice& choice) {
    const AllocationProblem::Column& column = problem.columns[choice.column];
    return -queue.gpu_time(choice.column) / column.uses[0].gpus * cost_per_s(problem, column) *
           3600;
  };
  const auto none = [](const auto&) { return 0.0; };
  std::vector<std::vector<double>> objectives{queue.objective(weight)};
  if (then == ThenLeast::kCost) objectives.push_back(queue.objective(cost));
  objectives.push_back(queue.objective(none, -1));
  const auto solution = queue.program.maximize(objectives, gap_of(problem));
  if (!solution.feasible) return {.feasible = false, .proven = solution.proven, .placements = {}};
  const std::vector<TimedWork> order =
      queue.order(solution, [&](const QueueProgram::Choice& choice) {
        return std::tuple(!choice.on_time, deadline(choice.column), -queue.time(choice.column));
      });
  const auto score = [&](const std::vector<TimedColumn>& placements) {
    return OrderScore{-met_weights(problem, placements), then == ThenLeast::kCost
                                                             ? cost_of(problem, placements)
                                                             : last_end(placements)};
  };
  const double most = solution.objective_values[0] * heaviest * (1 - kSolverRounding);
  Allocation allocation{.feasible = true, .placements = {}};
  allocation.placements = OrderSearch(problem, order, score, -most).run();
  const double met = met_weights(problem, allocation.placements),
               paid = cost_of(problem, allocation.placements);
  allocation.objective = then == ThenLeast::kCost ? paid : met;
  // The last objective only makes the end early.
  const size_t needed = then == ThenLeast::kCost ? 2 : 1;
  allocation.proven = solution.proven_objectives >= needed && met >= most * (1 - gap_of(problem));
  if (then == ThenLeast::kCost)
    allocation.proven = allocation.proven && paid <= -solution.objective_values[1] *
                                                         queue.unit_s() / 3600 *
                                                         (1 + gap_of(problem) + kSolverRounding);
  return allocation;
}

}  // namespace tilecast
