#include "allocation/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

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
  SharedPool(const PoolOverTime& pool, Allocation (*objective)(const AllocationProblem&), Sees sees)
      : pool_(pool), objective_(objective), sees_(sees), simulated_(empty_simulation(pool)) {
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
  void divide(double time) {
    AllocationProblem problem{.kinds = pool_.kinds, .jobs = {}, .columns = {}};
    std::vector<size_t> types;
    for (const size_t j : active_) {
      const ArrivingJob& job = pool_.jobs[j];
      const double due = job.arrival_s + job.deadline_s - time;
      problem.jobs.push_back({.weight = job.weight,
                              .steps = left_[j],
                              .deadline_s = due > 0 ? due : kNoEnd,  // too late is as none
                              .elapsed_s = time - job.arrival_s,
                              .all_steps = job.steps});
      types.push_back(job.type);
    }
    problem.columns = pool_.columns(types);
    problem_ = sees_ == Sees::kKinds ? std::move(problem) : without_kinds(problem);
    const Allocation allocation = objective_(problem_);
    if (!allocation.feasible)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: at {:g} s the solver finds no allocation of {} jobs; numbers of "
                              "jobs (steps, weight, deadline_s) that are nearer to each other help",
                              kSimulatingPool, time, active_.size()));
    ++simulated_.divisions;
    if (!allocation.proven) ++simulated_.unproven;
    now_.clear();
    until_ = kNoEnd;
    speeds_.assign(active_.size(), 0);
    for (const TimedColumn& timed : allocation.placements) {
      if (timed.begin_s > 0) {
        until_ = std::min(until_, timed.begin_s);
        continue;
      }
      until_ = std::min(until_, timed.end_s);
      now_.push_back(timed);
      for (const auto& [job, speed] : problem_.columns[timed.column].parts)
        speeds_[job] += timed.share * speed;
    }
    ends_s_.assign(active_.size(), kNoEnd);
    for (size_t i = 0; i < active_.size(); ++i)
      if (speeds_[i] > 0) ends_s_[i] = time + left_[active_[i]] / speeds_[i];
  }

  double next_event(double time) const {
    double event = until_ == kNoEnd ? kNoEnd : time + until_;
    for (const double end_s : ends_s_) event = std::min(event, end_s);
    if (next_ < pool_.jobs.size()) event = std::min(event, pool_.jobs[next_].arrival_s);
    return event;
  }

  void advance(double time, double until) {
    for (const TimedColumn& timed : now_) {
      const Column& column = problem_.columns[timed.column];
      const double jobs = static_cast<double>(column.parts.size());
      for (const auto& [job, speed] : column.parts)
        for (const auto& [kind, gpus] : column.uses)
          add_span(simulated_, {active_[job], kind, time, until, timed.share * gpus / jobs});
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

  const PoolOverTime& pool_;
  Allocation (*objective_)(const AllocationProblem&);
  Sees sees_;
  SimulatedPool simulated_;
  std::vector<double> left_;    ///< steps, by job
  std::vector<size_t> active_;  ///< jobs that have arrived and have not ended
  size_t next_ = 0;             ///< the next to arrive
  AllocationProblem problem_;   ///< of the active ones
  std::vector<TimedColumn> now_;
  std::vector<double> speeds_, ends_s_;  ///< of active jobs
  double until_ = kNoEnd;                ///< from now, how long these hold
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
                                 Allocation (*objective)(const AllocationProblem&), Sees sees) {
  return SharedPool(pool, objective, sees).run();
}

}  // namespace tilecast
