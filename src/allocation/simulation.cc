#include "allocation/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "base/budget.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Column = AllocationProblem::Column;
using Span = SimulatedPool::Span;

constexpr const char* kSimulatingPool = "simulating a cluster";

SimulatedPool empty_simulation(const PoolOverTime& pool) {
  return {.ends_s = std::vector<double>(pool.jobs.size(), kNoEnd),
          .gpu_s = std::vector<double>(pool.kinds.size()),
          .spans = {}};
}

void add_span(SimulatedPool& simulated, const Span& span) {
  simulated.gpu_s[span.kind] += span.gpus * (span.end_s - span.begin_s);
  simulated.spans.push_back(span);
}

void end_job(SimulatedPool& simulated, size_t job, double time) {
  simulated.ends_s[job] = time;
  simulated.makespan_s = std::max(simulated.makespan_s, time);
}

/// The pool between two events.
class SharedPool {
 public:
  SharedPool(const PoolOverTime& pool, Allocation (*objective)(const AllocationProblem&), Sees sees,
             std::optional<Divide> alike)
      : pool_(pool),
        objective_(objective),
        sees_(sees),
        alike_(alike),
        simulated_(empty_simulation(pool)) {
    for (const ArrivingJob& job : pool.jobs) left_.push_back(job.steps);
  }

  SimulatedPool run() {
    double time = 0;
    while (next_ < pool_.jobs.size() || !active_.empty()) {
      Budget::here().check(kSimulatingPool);  // a division may take seconds
      if (active_.empty()) time = std::max(time, pool_.jobs[next_].arrival_s);
      while (next_ < pool_.jobs.size() && pool_.jobs[next_].arrival_s <= time)
        active_.push_back(next_++);
      divide(time);
      const double until = next_event(time);
      if (until == kNoEnd) break;  // nothing runs, and nobody arrives
      advance(time, until);
      time = until;
    }
    return std::move(simulated_);
  }

 private:
  /// The jobs of the problem that are active: each alone, or those that are alike together.
  void find_members() {
    members_.clear();
    std::map<std::pair<size_t, double>, size_t> known;
    for (size_t i = 0; i < active_.size(); ++i) {
      const ArrivingJob& job = pool_.jobs[active_[i]];
      size_t number = members_.size();
      if (alike_) number = known.try_emplace({job.type, job.weight}, number).first->second;
      if (number == members_.size()) members_.emplace_back();
      members_[number].push_back(i);
    }
  }

  AllocationProblem problem_now(double time) const {
    AllocationProblem problem{.kinds = pool_.kinds, .jobs = {}, .columns = {}, .near = {}};
    std::vector<size_t> types;
    for (const std::vector<size_t>& members : members_) {
      const size_t j = active_[members.front()];
      const ArrivingJob& job = pool_.jobs[j];
      const double due = job.arrival_s + job.deadline_s - time;
      problem.jobs.push_back({.count = static_cast<double>(members.size()),
                              .weight = job.weight,
                              .steps = left_[j],
                              .deadline_s = due > 0 ? due : kNoEnd,  // too late is as none
                              .elapsed_s = time - job.arrival_s,
                              .all_steps = job.steps});
      types.push_back(job.type);
    }
    problem.columns = pool_.columns(types);
    return sees_ == Sees::kKinds ? problem : without_kinds(problem);
  }

  void divide(double time) {
    find_members();
    problem_ = problem_now(time);
    problem_.near = std::move(prices_);
    Allocation allocation = objective_(problem_);
    if (!allocation.feasible)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: at {:g} s the solver finds no allocation of {} jobs; numbers of "
                              "jobs (steps, weight, deadline_s) that are nearer to each other help",
                              kSimulatingPool, time, active_.size()));
    prices_ = std::move(allocation.prices);
    ++simulated_.divisions;
    if (!allocation.proven) ++simulated_.unproven;
    now_.clear();
    until_ = kNoEnd;
    speeds_.assign(active_.size(), 0);
    taken_.assign(active_.size(), 0);
    for (const TimedColumn& timed : allocation.placements) {
      if (timed.begin_s > 0) {
        until_ = std::min(until_, timed.begin_s);
        continue;
      }
      until_ = std::min(until_, timed.end_s);
      run_now(timed);
    }
    ends_s_.assign(active_.size(), kNoEnd);
    for (size_t i = 0; i < active_.size(); ++i)
      if (speeds_[i] > 0) ends_s_[i] = time + left_[active_[i]] / speeds_[i];
  }

  /// Divides the share of a column among the members of its jobs.
  void run_now(const TimedColumn& timed) {
    const Column& column = problem_.columns[timed.column];
    for (const auto& [number, speed] : column.parts) {
      const std::vector<size_t>& members = members_[number];
      double left = timed.share;
      for (const size_t i : members) {
        double share = timed.share / static_cast<double>(members.size());
        if (alike_ == Divide::kInTurn) share = std::min(left, 1 - taken_[i]);
        left -= share;
        if (share < kLeastOfJob) continue;
        taken_[i] += share;
        speeds_[i] += share * speed;
        now_.push_back({.active = i, .column = timed.column, .share = share});
      }
    }
  }

  double next_event(double time) const {
    double event = until_ == kNoEnd ? kNoEnd : time + until_;
    for (const double end_s : ends_s_) event = std::min(event, end_s);
    if (next_ < pool_.jobs.size()) event = std::min(event, pool_.jobs[next_].arrival_s);
    return event;
  }

  void advance(double time, double until) {
    for (const Running& one : now_) {
      const Column& column = problem_.columns[one.column];
      const double jobs = static_cast<double>(column.parts.size());
      for (const auto& [kind, gpus] : column.uses)
        add_span(simulated_, {active_[one.active], kind, time, until, one.share * gpus / jobs});
    }
    constexpr double kRounding = 1e-9;
    std::vector<size_t> still;
    for (size_t i = 0; i < active_.size(); ++i) {
      const size_t j = active_[i];
      left_[j] -= speeds_[i] * (until - time);
      // An end is a rounded number: up to it, a job may do less than what it has left.
      if (ends_s_[i] <= until || left_[j] <= kRounding * pool_.jobs[j].steps)
        end_job(simulated_, j, until);
      else
        still.push_back(j);
    }
    if (until <= time && still.size() == active_.size())
      throw Error(ErrorKind::kInternal,
                  fmt::format("{}: no time passes at {:g} s, and none of {} jobs ends",
                              kSimulatingPool, time, active_.size()));
    active_ = std::move(still);
  }

  static constexpr double kLeastOfJob = 1e-12;  // less is the rounding of sums
  struct Running {
    size_t active, column;
    double share;
  };

  const PoolOverTime& pool_;
  Allocation (*objective_)(const AllocationProblem&);
  Sees sees_;
  std::optional<Divide> alike_;
  SimulatedPool simulated_;
  std::vector<double> left_;                  ///< steps, by job
  std::vector<size_t> active_;                ///< jobs that have arrived and have not ended
  size_t next_ = 0;                           ///< the next to arrive
  AllocationProblem problem_;                 ///< of the active ones
  std::vector<PoolPrices> prices_;            ///< of the division before
  std::vector<std::vector<size_t>> members_;  ///< by job of the problem: which of the active ones
  std::vector<Running> now_;
  std::vector<double> speeds_, taken_, ends_s_;  ///< of active jobs
  double until_ = kNoEnd;                        ///< from now, how long these hold
};

}  // namespace

SimulatedPool simulate_first_come(const PoolOverTime& pool) {
  SimulatedPool simulated = empty_simulation(pool);
  struct Running {
    size_t job;
    AllocationProblem::Use use;
    double end_s;
  };
  std::vector<Running> running;
  std::vector<double> free;
  for (const AllocationProblem::Kind& kind : pool.kinds) free.push_back(kind.gpus);
  std::deque<size_t> waiting;
  size_t next = 0;
  double time = 0;
  const auto start = [&](size_t j) {
    const Column* best = nullptr;
    const std::vector<Column> columns = pool.columns({pool.jobs[j].type});
    for (const Column& column : columns) {
      const auto& [kind, gpus] = column.uses[0];
      if (gpus > free[kind]) continue;
      if (best == nullptr || gpus < best->uses[0].gpus ||
          (gpus == best->uses[0].gpus && free[kind] > free[best->uses[0].kind]))
        best = &column;
    }
    if (best == nullptr) return false;
    const auto& [kind, gpus] = best->uses[0];
    free[kind] -= gpus;
    running.push_back({j, best->uses[0], time + pool.jobs[j].steps / best->parts[0].steps_per_s});
    add_span(simulated, {j, kind, time, running.back().end_s, gpus});
    return true;
  };
  while (next < pool.jobs.size() || !running.empty()) {
    go_on(kSimulatingPool);
    double event = next < pool.jobs.size() ? pool.jobs[next].arrival_s : kNoEnd;
    for (const Running& one : running) event = std::min(event, one.end_s);
    time = event;
    std::erase_if(running, [&](const Running& one) {
      if (one.end_s > time) return false;
      free[one.use.kind] += one.use.gpus;
      end_job(simulated, one.job, time);
      return true;
    });
    while (next < pool.jobs.size() && pool.jobs[next].arrival_s <= time) waiting.push_back(next++);
    while (!waiting.empty() && start(waiting.front())) waiting.pop_front();
  }
  return simulated;
}

SimulatedPool simulate_objective(const PoolOverTime& pool,
                                 Allocation (*objective)(const AllocationProblem&), Sees sees,
                                 std::optional<Divide> alike) {
  return SharedPool(pool, objective, sees, alike).run();
}

}  // namespace tilecast
