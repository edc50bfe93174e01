#include "allocation/queue.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "allocation/linear_program.h"
#include "allocation/shares_program.h"

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

  /// Runs what was chosen, jobs with a lower `rank` first.
  template <typename Rank>
  Allocation run(const LinearProgram::Solution& solution, const Rank& rank) const {
    Allocation allocation{
        .feasible = solution.feasible, .proven = solution.proven, .placements = {}};
    if (!solution.feasible) return allocation;
    std::vector<Choice> chosen;
    for (size_t i = 0; i < choices.size(); ++i)
      if (solution.values[i] > 0.5) chosen.push_back(choices[i]);
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](const Choice& a, const Choice& b) { return rank(a) < rank(b); });
    std::vector<TimedWork> order;
    for (const Choice& choice : chosen)
      order.push_back({choice.column, seconds_of(problem_, problem_.columns[choice.column])});
    allocation.placements = run_in_order(problem_, order, 0);
    return allocation;
  }

  LinearProgram program;
  std::vector<Choice> choices;
  std::vector<int> longer_rows;  ///< a chosen job's time <= the end

 private:
  const AllocationProblem& problem_;
  double unit_s_ = 0;
  std::vector<int> job_rows_, load_rows_;
};

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
  // The longest first: the usual order for a short end.
  Allocation allocation = queue.run(
      solution, [&](const QueueProgram::Choice& choice) { return -queue.time(choice.column); });
  for (const TimedColumn& placement : allocation.placements)
    allocation.objective = std::max(allocation.objective, placement.end_s);
  return allocation;
}

Allocation queue_for_deadlines(const AllocationProblem& problem, ThenLeast then) {
  QueueProgram queue(problem);
  const auto deadline = [&](size_t column) {
    return problem.jobs[problem.columns[column].parts[0].job].deadline_s;
  };
  // Up to each deadline a kind's GPUs have time for the jobs that are due by then.
  std::map<std::pair<size_t, double>, int> due;
  for (size_t c = 0; c < problem.columns.size(); ++c) {
    if (!runs_alone(problem, problem.columns[c]) || deadline(c) == kNoEnd) continue;
    const size_t kind = problem.columns[c].uses[0].kind;
    const auto [at, is_new] = due.try_emplace({kind, deadline(c)}, -1);
    if (is_new)
      at->second = queue.program.add_row(-LinearProgram::kNoLimit,
                                         problem.kinds[kind].gpus * deadline(c) / queue.unit_s());
  }
  for (size_t c = 0; c < problem.columns.size(); ++c) {
    const Column& column = problem.columns[c];
    if (!runs_alone(problem, column)) continue;
    queue.add({c, false}, {});
    if (deadline(c) == kNoEnd || seconds_of(problem, column) > deadline(c)) continue;
    std::vector<LinearProgram::Entry> entries;
    const size_t kind = column.uses[0].kind;
    for (auto at = due.lower_bound({kind, deadline(c)}); at != due.end() && at->first.first == kind;
         ++at)
      entries.push_back({at->second, queue.gpu_time(c)});
    queue.add({c, true}, entries);
  }
  queue.add_end();
  const auto weight = [&](const QueueProgram::Choice& choice) {
    return choice.on_time ? problem.jobs[problem.columns[choice.column].parts[0].job].weight : 0.0;
  };
  const auto cost = [&](const QueueProgram::Choice& choice) {
    const auto& [kind, gpus] = problem.columns[choice.column].uses[0];
    return -queue.gpu_time(choice.column) * problem.kinds[kind].price_per_gpu_s * 3600;
  };
  const auto none = [](const auto&) { return 0.0; };
  std::vector<std::vector<double>> objectives{queue.objective(weight)};
  if (then == ThenLeast::kCost) objectives.push_back(queue.objective(cost));
  objectives.push_back(queue.objective(none, -1));
  const auto solution = queue.program.maximize(objectives, gap_of(problem));
  Allocation allocation = queue.run(solution, [&](const QueueProgram::Choice& choice) {
    return std::tuple(!choice.on_time, deadline(choice.column), -queue.time(choice.column));
  });
  if (!allocation.feasible) return allocation;
  const std::vector<JobShare> shares = shares_of(problem, allocation);
  for (size_t j = 0; j < shares.size(); ++j) {
    const AllocationProblem::Job& job = problem.jobs[j];
    if (then == ThenLeast::kCost)
      allocation.objective += shares[j].cost;
    else if (job.deadline_s < kNoEnd && shares[j].finish_s <= job.deadline_s * (1 + 1e-9))
      allocation.objective += job.weight;
  }
  return allocation;
}

}  // namespace tilecast
