// Deadlines and cost. Time is cut at the deadlines; in each span a column has a share of the time,
// so that a job with an early deadline gets the GPUs first. After the last deadline is a span
// without end, for what is late or has no deadline.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "allocation/linear_program.h"
#include "allocation/problem.h"
#include "allocation/queue.h"
#include "allocation/shares_program.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;

/// The ends of the spans: the deadlines, or so many of them that the program stays small. A job
/// whose deadline is within a span counts the part of it that lies before.
std::vector<double> ends_of(const AllocationProblem& problem) {
  constexpr size_t kMostVariables = 100'000, kMostSpans = 100;
  std::vector<double> ends;
  for (const AllocationProblem::Job& job : problem.jobs)
    if (job.deadline_s < kNoEnd) ends.push_back(job.deadline_s);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  const size_t most = std::clamp(kMostVariables / std::max<size_t>(1, problem.columns.size()),
                                 size_t{1}, kMostSpans);
  if (ends.size() <= most) return ends;
  std::vector<double> some;
  for (size_t i = 1; i <= most; ++i) some.push_back(ends[i * ends.size() / most - 1]);
  return some;
}

/// Whether jobs that could meet their deadlines may be late: the program then decides which ones.
enum class Late { kNone, kSome };

class SpansProgram {
 public:
  SpansProgram(const AllocationProblem& problem, Late late)
      : problem_(problem), late_(late), ends_(ends_of(problem)), fastest_(fastest_speeds(problem)) {
    for (size_t j = 0; j < problem.jobs.size(); ++j)
      if (asked(j)) open_s_ = std::max(open_s_, problem.jobs[j].steps / fastest_[j]);
    add_rows();
    for (size_t span = 0; span <= ends_.size(); ++span)
      for (size_t c = 0; c < problem.columns.size(); ++c) add_variable(span, c);
    for (size_t j = 0; j < problem.jobs.size(); ++j) add_meets(j);
  }

  /// Adds GPUs of a kind, as many as it takes; the last variable.
  void add_gpus(size_t kind) {
    std::vector<LinearProgram::Entry> entries;
    for (size_t span = 0; span < ends_.size(); ++span)
      entries.push_back({kind_rows_[span][kind], -1});
    program_.add_column(0, LinearProgram::kNoLimit, entries);
  }
  std::optional<double> least_last() const {
    std::vector<double> objective(program_.columns());
    objective.back() = -1;
    const auto solution = program_.maximize({objective});
    if (!solution.feasible) return std::nullopt;
    return -solution.objective_values[0];
  }

  Allocation solve(ThenLeast then) const {
    std::vector<std::vector<double>> objectives;
    std::vector<double> weights(program_.columns()), costs = weights, times = weights;
    for (const auto& [job, variable] : meets_) weights[variable] = problem_.jobs[job].weight;
    double most_cost = 0, most_time = 0;
    for (const Variable& variable : variables_) {
      costs[variable.number] =
          -length(variable.span) * cost_per_s(problem_, problem_.columns[variable.column]);
      times[variable.number] = -length(variable.span) * middle(variable.span);
      most_cost = std::min(most_cost, costs[variable.number]);
      most_time = std::min(most_time, times[variable.number]);
    }
    const auto scaled = [](std::vector<double> values, double most) {
      for (double& value : values) value /= most == 0 ? 1 : -most;
      return values;
    };
    if (late_ == Late::kSome) objectives.push_back(scaled(weights, -heaviest_weight(problem_)));
    if (then == ThenLeast::kCost) objectives.push_back(scaled(costs, most_cost));
    // After another objective, that of a large program takes minutes.
    constexpr size_t kLarge = 50'000;
    if (variables_.size() < kLarge || objectives.empty())
      objectives.push_back(scaled(times, most_time));
    const auto solution = program_.maximize(objectives, gap_of(problem_));
    Allocation allocation{
        .feasible = solution.feasible, .proven = solution.proven, .placements = {}};
    if (!solution.feasible) return allocation;
    const std::vector<double>& valued = then == ThenLeast::kCost ? costs : weights;
    allocation.objective =
        std::abs(std::inner_product(valued.begin(), valued.end(), solution.values.begin(), 0.0));
    allocation.placements = placements_of(solution.values);
    return allocation;
  }

 private:
  struct Variable {
    size_t span, column;
    size_t number;
  };

  bool asked(size_t j) const { return fastest_[j] > 0 && problem_.jobs[j].steps > 0; }
  bool can_meet(size_t j) const {
    constexpr double kRounding = 1e-9;
    return problem_.jobs[j].steps / fastest_[j] <= problem_.jobs[j].deadline_s * (1 + kRounding);
  }
  double begin(size_t span) const { return span == 0 ? 0 : ends_[span - 1]; }
  /// Of the last one, the unit of its shares.
  double length(size_t span) const {
    return span == ends_.size() ? open_s_ : ends_[span] - begin(span);
  }
  double middle(size_t span) const { return begin(span) + length(span) / 2; }

  void add_rows() {
    constexpr double kNone = -LinearProgram::kNoLimit;
    for (size_t j = 0; j < problem_.jobs.size(); ++j) {
      done_rows_.push_back(asked(j) ? program_.add_row(1, LinearProgram::kNoLimit) : -1);
      const bool due = asked(j) && problem_.jobs[j].deadline_s < kNoEnd;
      due_rows_.push_back(due ? program_.add_row(0, LinearProgram::kNoLimit) : -1);
    }
    for (size_t span = 0; span < ends_.size(); ++span) {
      job_rows_.emplace_back();
      for (size_t j = 0; j < problem_.jobs.size(); ++j)
        job_rows_.back().push_back(program_.add_row(kNone, 1));
      kind_rows_.emplace_back();
      for (const AllocationProblem::Kind& kind : problem_.kinds)
        kind_rows_.back().push_back(program_.add_row(kNone, kind.gpus));
    }
  }

  void add_variable(size_t span, size_t c) {
    const Column& column = problem_.columns[c];
    const bool open = span == ends_.size();
    std::vector<LinearProgram::Entry> entries;
    // Jobs that meet their deadlines are done by then.
    if (late_ == Late::kNone &&
        std::all_of(column.parts.begin(), column.parts.end(), [&](const auto& part) {
          return asked(part.job) && can_meet(part.job) &&
                 problem_.jobs[part.job].deadline_s <= begin(span);
        }))
      return;
    for (const auto& [j, speed] : column.parts) {
      if (!asked(j)) return;
      const AllocationProblem::Job& job = problem_.jobs[j];
      const double done = length(span) * speed / job.steps;
      entries.push_back({done_rows_[j], done});
      if (open) continue;
      entries.push_back({job_rows_[span][j], 1});
      const double before = std::clamp((job.deadline_s - begin(span)) / length(span), 0.0, 1.0);
      if (due_rows_[j] >= 0 && before > 0) entries.push_back({due_rows_[j], done * before});
    }
    if (!open)
      for (const auto& [kind, gpus] : column.uses)
        entries.push_back({kind_rows_[span][kind], gpus});
    const int number = program_.add_column(0, open ? LinearProgram::kNoLimit : 1, entries);
    variables_.push_back({span, c, static_cast<size_t>(number)});
  }

  void add_meets(size_t j) {
    if (due_rows_[j] < 0) return;
    const std::vector<LinearProgram::Entry> entries{{due_rows_[j], -1}};
    const double most = can_meet(j) ? 1 : 0, least = late_ == Late::kNone ? most : 0;
    meets_.emplace_back(j,
                        program_.add_column(least, most, entries, LinearProgram::Values::kWhole));
  }

  std::vector<TimedColumn> placements_of(const std::vector<double>& values) const {
    std::vector<TimedColumn> placements;
    std::vector<TimedWork> last;
    // A job that meets its deadline has done all steps by then, also within a span.
    std::vector<double> job_end(problem_.jobs.size(), kNoEnd);
    for (const auto& [job, variable] : meets_)
      if (values[static_cast<size_t>(variable)] > 0.5) job_end[job] = problem_.jobs[job].deadline_s;
    for (const Variable& variable : variables_) {
      const double value = values[variable.number];
      if (value <= kLeastShare ||
          begin(variable.span) >= latest_end(problem_.columns[variable.column], job_end))
        continue;
      if (variable.span == ends_.size())
        last.push_back({variable.column, value * open_s_});
      else
        placements.push_back(
            {.column = variable.column,
             .share = std::min(1.0, value),
             .begin_s = begin(variable.span),
             .end_s = std::min(ends_[variable.span],
                               latest_end(problem_.columns[variable.column], job_end))});
    }
    run_at_once(placements);
    const std::vector<TimedColumn> after = runs_in_order(last) ? in_order(last) : at_once(last);
    placements.insert(placements.end(), after.begin(), after.end());
    return placements;
  }

  static double latest_end(const Column& column, const std::vector<double>& job_end) {
    double end = 0;
    for (const auto& part : column.parts) end = std::max(end, job_end[part.job]);
    return end;
  }

  /// A column of several kinds is a mean, not a place.
  bool runs_in_order(const std::vector<TimedWork>& work) const {
    return std::all_of(work.begin(), work.end(), [&](const TimedWork& one) {
      return problem_.columns[one.column].uses.size() == 1;
    });
  }
  /// The shortest first, for an early end of most.
  std::vector<TimedColumn> in_order(std::vector<TimedWork> work) const {
    std::stable_sort(work.begin(), work.end(),
                     [](const TimedWork& a, const TimedWork& b) { return a.seconds < b.seconds; });
    return run_in_order(problem_, work, begin(ends_.size()));
  }
  /// Side by side until the busiest kind and the busiest job are done.
  std::vector<TimedColumn> at_once(const std::vector<TimedWork>& work) const {
    std::vector<double> by_kind(problem_.kinds.size()), by_job(problem_.jobs.size());
    double length = 0;
    for (const auto& [c, seconds] : work) {
      for (const auto& [kind, gpus] : problem_.columns[c].uses)
        length = std::max(length, by_kind[kind] += seconds * gpus / problem_.kinds[kind].gpus);
      for (const auto& part : problem_.columns[c].parts)
        length = std::max(length, by_job[part.job] += seconds);
    }
    const double from = begin(ends_.size());
    std::vector<TimedColumn> placements;
    for (const auto& [c, seconds] : work)
      placements.push_back(
          {.column = c, .share = seconds / length, .begin_s = from, .end_s = from + length});
    return placements;
  }

  /// Where a span has GPUs for all its columns at once, each runs whole from the span's begin: its
  /// job ends earlier. Not for jobs of several columns in the span.
  void run_at_once(std::vector<TimedColumn>& placements) const {
    for (size_t first = 0, last = 0; first < placements.size(); first = last) {
      std::vector<double> wanted(problem_.kinds.size());
      std::vector<int> columns(problem_.jobs.size());
      for (; last < placements.size() && placements[last].begin_s == placements[first].begin_s;
           ++last) {
        const Column& column = problem_.columns[placements[last].column];
        for (const auto& [kind, gpus] : column.uses) wanted[kind] += gpus;
        for (const auto& part : column.parts) ++columns[part.job];
      }
      for (size_t i = first; i < last; ++i) {
        TimedColumn& timed = placements[i];
        const Column& column = problem_.columns[timed.column];
        const bool room = std::all_of(column.uses.begin(), column.uses.end(), [&](const auto& use) {
          return wanted[use.kind] <= problem_.kinds[use.kind].gpus;
        });
        const bool one = std::all_of(column.parts.begin(), column.parts.end(),
                                     [&](const auto& part) { return columns[part.job] == 1; });
        if (!room || !one) continue;
        timed.end_s = timed.begin_s + timed.share * (timed.end_s - timed.begin_s);
        timed.share = 1;
      }
    }
  }

  const AllocationProblem& problem_;
  Late late_;
  LinearProgram program_;
  std::vector<double> ends_, fastest_;
  double open_s_ = 0;
  std::vector<int> done_rows_, due_rows_;
  std::vector<std::vector<int>> job_rows_, kind_rows_;  ///< by span
  std::vector<Variable> variables_;
  std::vector<std::pair<size_t, int>> meets_;  ///< a job, and whether it meets its deadline
};

Allocation solve_spans(const AllocationProblem& problem, ThenLeast then) {
  if (problem.whole) return require_found(queue_for_deadlines(problem, then));
  Allocation all_meet = SpansProgram(problem, Late::kNone).solve(then);
  return all_meet.feasible ? std::move(all_meet)
                           : require_found(SpansProgram(problem, Late::kSome).solve(then));
}

/// The placements of one span in turns; nullopt: some would end later than they do.
std::optional<std::vector<TimedColumn>> turns_of(const AllocationProblem& problem,
                                                 std::vector<TimedColumn> placements,
                                                 const std::vector<double>& last_begin) {
  constexpr double kRounding = 5e-7;  // of the solver
  const double begin = placements.front().begin_s;
  const auto is_apart = [](const TimedColumn& one) { return one.share >= 1; };
  if (std::all_of(placements.begin(), placements.end(), is_apart)) return std::nullopt;
  for (const TimedColumn& one : placements)
    if (one.end_s == kNoEnd || problem.columns[one.column].uses.size() != 1) return std::nullopt;
  const auto rank = [&](const TimedColumn& one) {
    const Column& column = problem.columns[one.column];
    const bool goes_on =
        std::all_of(column.parts.begin(), column.parts.end(),
                    [&](const auto& part) { return last_begin[part.job] > begin; });
    return std::tuple(one.end_s, goes_on, one.share * (one.end_s - begin));
  };
  std::stable_sort(placements.begin(), placements.end(),
                   [&](const TimedColumn& a, const TimedColumn& b) { return rank(a) < rank(b); });
  std::vector<TimedWork> order;
  for (const TimedColumn& one : placements)
    order.push_back({one.column, one.share * (one.end_s - begin)});
  std::vector<TimedColumn> turns = run_in_order(problem, order, begin);
  for (size_t i = 0; i < turns.size(); ++i)
    if (turns[i].end_s > placements[i].end_s * (1 + kRounding)) return std::nullopt;
  return turns;
}

}  // namespace

Allocation in_turns(const AllocationProblem& problem, Allocation allocation) {
  std::vector<TimedColumn>& all = allocation.placements;
  std::stable_sort(all.begin(), all.end(), [](const TimedColumn& a, const TimedColumn& b) {
    return a.begin_s < b.begin_s;
  });
  std::vector<double> last_begin(problem.jobs.size());
  for (const TimedColumn& one : all)
    for (const auto& part : problem.columns[one.column].parts) last_begin[part.job] = one.begin_s;
  for (auto first = all.begin(), last = first; first != all.end(); first = last) {
    last = std::find_if(first, all.end(),
                        [&](const TimedColumn& one) { return one.begin_s != first->begin_s; });
    if (const auto turns = turns_of(problem, {first, last}, last_begin))
      std::copy(turns->begin(), turns->end(), first);
  }
  return allocation;
}

Allocation minimize_cost(const AllocationProblem& problem) {
  return solve_spans(problem, ThenLeast::kCost);
}

Allocation meet_deadlines(const AllocationProblem& problem) {
  return solve_spans(problem, ThenLeast::kTime);
}

std::optional<double> gpus_to_meet_deadlines(const AllocationProblem& problem, size_t kind) {
  SpansProgram spans(problem, Late::kNone);
  spans.add_gpus(kind);
  const std::optional<double> gpus = spans.least_last();
  constexpr double kRounding = 1e-6;
  if (!gpus) return std::nullopt;
  return std::ceil(*gpus - kRounding);
}

}  // namespace tilecast
