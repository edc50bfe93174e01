// Which job goes where: forecasts of all places, and the best allocation.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "many/objectives.h"
#include "many/pool_speeds.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr std::array kObjectives = {
    ObjectiveDef{maximize_throughput, false, false, false, false, Divide::kInTurn},
    ObjectiveDef{minimize_makespan, true, false, false, true},
    ObjectiveDef{maximize_fairness, false, false, false, false, Divide::kEqually},
    ObjectiveDef{minimize_finish_time_ratio, true, false, false, false},
    ObjectiveDef{minimize_cost, true, true, false, true},
    ObjectiveDef{meet_deadlines, true, false, true, true},
    ObjectiveDef{minimize_cost, true, false, false, true}};

/// Energy in place of money. Watts of jobs beside each other are not forecast.
void set_watts(AllocationProblem& problem, const PoolSpeeds& speeds) {
  for (AllocationProblem::Column& column : problem.columns) {
    const auto& [kind, gpus] = column.uses[0];
    column.cost_per_s = speeds.watts(column.parts[0].job, kind, gpus);
  }
}

AllocationProblem problem_of(const AllocationQuery& query, const PoolSpeeds& speeds) {
  AllocationProblem problem{
      .kinds = speeds.kinds(), .jobs = {}, .columns = {}, .whole = query.whole, .near = {}};
  std::vector<size_t> all;
  for (size_t j = 0; j < query.jobs.size(); ++j) {
    const PoolJob& job = query.jobs[j];
    problem.jobs.push_back({.weight = job.weight,
                            .steps = job.steps.value_or(0),
                            .deadline_s = job.deadline_s.value_or(kNoEnd)});
    all.push_back(j);
  }
  problem.columns = speeds.columns(all);
  if (query.objective == AllocationObjective::kEnergy) set_watts(problem, speeds);
  return problem;
}

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Why a job cannot run anywhere.
std::string why_nowhere(const AllocatedJob& job) {
  if (job.options.empty())
    return "takes more GPUs than there are of any kind: give other numbers (gpus)";
  const PlaceOption* smallest = nullptr;
  for (const PlaceOption& option : job.options) {
    if (!option.steps_per_s) continue;
    if (smallest == nullptr || option.memory_bytes < smallest->memory_bytes) smallest = &option;
  }
  if (smallest == nullptr) return *job.options.front().error;
  return fmt::format(
      "fits no GPU of the pool: it takes at least {} ({}): give it a smaller batch, other dtypes "
      "or a GPU with more memory",
      format_bytes(smallest->memory_bytes), smallest->gpu);
}

std::string why_late(const AllocatedJob& job, double alone_s) {
  if (alone_s > *job.deadline_s)
    return fmt::format(
        "its steps take {} on its fastest place alone: no deadline below that can be met; give it "
        "fewer steps or a faster GPU",
        format_seconds(alone_s));
  return "is late beside the others";
}

class AllocationResult {
 public:
  AllocationResult(const AllocationQuery& query, const PoolSpeeds& speeds)
      : query_(query), speeds_(speeds), problem_(problem_of(query, speeds)) {
    const ObjectiveDef& objective = objective_def(query.objective);
    result_.objective = choice_word(query.objective);
    result_.whole = query.whole;
    result_.warnings = speeds.warnings();
    result_.pool = unused(query.pool);
    if (!problem_.columns.empty()) {
      if (query.whole) check_places();
      allocation_ = in_turns(problem_, objective.solve(problem_));
      result_.value = if_finite(allocation_.objective);
      // Without kinds a job has parts of several places: none that is whole.
      if (!query.whole)
        result_.blind_value = if_finite(objective.solve(without_kinds(problem_)).objective);
      result_.proven = allocation_.proven;
    }
  }

  AllocationForecast take() {
    add_jobs();
    add_places();
    add_sums();
    add_deadlines();
    add_assumptions();
    return std::move(result_);
  }

 private:
  /// Whole jobs wait only with an objective that lets them queue.
  void check_places() const {
    if (objective_def(query_.objective).queues) return;
    size_t jobs = 0;
    for (size_t j = 0; j < query_.jobs.size(); ++j) jobs += speeds_.fits_somewhere(j) ? 1 : 0;
    int64_t gpus = 0;
    for (const PoolKind& kind : query_.pool) gpus += kind.gpus;
    const int64_t most = query_.share ? 2 * gpus : gpus;
    if (static_cast<int64_t>(jobs) <= most) return;
    throw Error(ErrorKind::kUnsupported,
                fmt::format("with `whole`, the objective {} needs at most {} jobs as GPUs: there "
                            "are {} jobs for {} GPU{}: ask for makespan, cost or deadline, which "
                            "let jobs queue, or leave out `whole`",
                            result_.objective, query_.share ? "twice as many" : "as many", jobs,
                            gpus, gpus == 1 ? "" : "s"));
  }

  void add_jobs() {
    shares_ = shares_of(problem_, allocation_);
    const std::vector<double> fastest = fastest_speeds(problem_);
    for (size_t j = 0; j < query_.jobs.size(); ++j) {
      const PoolJob& asked = query_.jobs[j];
      const JobShare& share = shares_[j];
      AllocatedJob job{.name = asked.job.name,
                       .model = asked.job.model.name(),
                       .weight = asked.weight,
                       .places = {},
                       .time_share = share.time_share,
                       .steps_per_s = share.steps_per_s,
                       .relative_speed = fastest[j] > 0 ? share.steps_per_s / fastest[j] : 0,
                       .finish_s = {},
                       .cost = {},
                       .deadline_s = asked.deadline_s,
                       .meets_deadline = {},
                       .options = speeds_.options(j),
                       .note = ""};
      constexpr double kRounding = 1e-6;
      if (share.steps_per_s > 0 && asked.steps) {
        job.finish_s = if_finite(share.finish_s);
        // With energy in its place, what a share costs are joules.
        if (has_prices() && query_.objective != AllocationObjective::kEnergy) job.cost = share.cost;
      }
      if (asked.deadline_s)
        job.meets_deadline = job.finish_s && *job.finish_s <= *asked.deadline_s * (1 + kRounding);
      if (!speeds_.fits_somewhere(j))
        job.note = why_nowhere(job);
      else if (share.steps_per_s <= 0)
        job.note = "waits: the GPUs give more to the other jobs";
      else if (job.meets_deadline && !*job.meets_deadline)
        job.note = why_late(job, *asked.steps / fastest[j]);
      result_.jobs.push_back(std::move(job));
    }
  }

  void add_places() {
    for (const TimedColumn& timed : allocation_.placements) {
      const AllocationProblem::Column& column = problem_.columns[timed.column];
      const auto& [kind, gpus] = column.uses[0];
      for (const auto& [job, speed] : column.parts) {
        const auto& other =
            column.parts.front().job == job ? column.parts.back() : column.parts.front();
        result_.jobs[job].places.push_back(
            {.job = query_.jobs[job].job.name,
             .gpu = result_.pool[kind].gpu,
             .dtype = speeds_.dtype(job, kind, gpus),
             .beside = column.parts.size() > 1 ? query_.jobs[other.job].job.name : "",
             .gpus = static_cast<int64_t>(gpus),
             .share = timed.share,
             .steps_per_s = speed,
             .begin_s = timed.begin_s,
             .end_s = if_finite(timed.end_s)});
      }
    }
    for (AllocatedJob& job : result_.jobs)
      std::stable_sort(job.places.begin(), job.places.end(), [](const auto& a, const auto& b) {
        return a.begin_s != b.begin_s ? a.begin_s < b.begin_s : a.share > b.share;
      });
  }

  void add_sums() {
    double makespan = 0, cost = 0;
    bool has_end = true;
    for (const AllocatedJob& job : result_.jobs) {
      if (job.fits_nowhere()) continue;
      has_end = has_end && job.finish_s;
      makespan = std::max(makespan, job.finish_s.value_or(0));
      cost += job.cost.value_or(0);
    }
    if (has_end && makespan > 0) {
      result_.makespan_s = makespan;
      if (has_prices() && query_.objective != AllocationObjective::kEnergy) result_.cost = cost;
    }
    for (const TimedColumn& timed : allocation_.placements) {
      const AllocationProblem::Column& column = problem_.columns[timed.column];
      for (const auto& [kind, gpus] : column.uses) {
        double used = timed.share * gpus;
        if (result_.makespan_s) {
          double end = 0;
          for (const auto& part : column.parts)
            end = std::max(end, std::min(timed.end_s, shares_[part.job].finish_s));
          used *= (end - timed.begin_s) / *result_.makespan_s;
        }
        result_.pool[kind].used_gpus += used;
      }
    }
  }

  /// What would do where jobs are late that could meet their deadlines alone.
  void add_deadlines() {
    const bool is_asked = query_.objective == AllocationObjective::kDeadline ||
                          query_.objective == AllocationObjective::kCost ||
                          query_.objective == AllocationObjective::kEnergy;
    constexpr size_t kLarge = 20'000;  // columns, with which each answer takes half a minute
    if (!is_asked || query_.whole || problem_.columns.size() > kLarge) return;
    const std::vector<double> fastest = fastest_speeds(problem_);
    size_t late = 0;
    for (size_t j = 0; j < result_.jobs.size(); ++j) {
      const AllocatedJob& job = result_.jobs[j];
      if (job.meets_deadline && !*job.meets_deadline && fastest[j] > 0 &&
          *query_.jobs[j].steps / fastest[j] <= *job.deadline_s)
        ++late;
    }
    if (late == 0) return;
    std::string would_do;
    for (size_t kind = 0; kind < problem_.kinds.size(); ++kind)
      if (const auto more = gpus_to_meet_deadlines(problem_, kind); more && *more > 0)
        would_do += fmt::format("{}{:.0f} more {}", would_do.empty() ? "" : ", or ", *more,
                                result_.pool[kind].gpu);
    result_.warnings.push_back(fmt::format(
        "{} job{} late beside the others; {}", late, late == 1 ? " is" : "s are",
        would_do.empty() ? "no number of GPUs of one kind is enough: give later deadlines"
                         : would_do + " would do"));
  }

  void add_assumptions() {
    result_.assumptions.push_back(
        query_.whole ? "each job has one place; moving and starting cost nothing"
                     : "jobs take turns on GPUs and move between kinds at no cost");
    if (query_.share)
      result_.assumptions.push_back(
          fmt::format("up to two jobs share a GPU ({})", choice_word(*query_.share)));
    size_t nowhere = 0, waiting = 0;
    for (const AllocatedJob& job : result_.jobs) {
      nowhere += job.fits_nowhere() ? 1 : 0;
      waiting += job.places.empty() && !job.fits_nowhere() ? 1 : 0;
    }
    if (nowhere > 0)
      result_.warnings.push_back(
          fmt::format("{} of {} jobs fit nowhere", nowhere, result_.jobs.size()));
    if (waiting > 0 && query_.whole)
      result_.warnings.push_back(
          fmt::format("{} of {} jobs wait, as each of the others has its GPUs whole", waiting,
                      result_.jobs.size()));
    if (!result_.proven)
      result_.warnings.push_back("the solver ended before it proved that no allocation is better");
  }

  bool has_prices() const {
    return std::all_of(query_.pool.begin(), query_.pool.end(),
                       [](const PoolKind& kind) { return kind.price_per_gpu_hour.has_value(); });
  }

  const AllocationQuery& query_;
  const PoolSpeeds& speeds_;
  AllocationProblem problem_;
  Allocation allocation_;
  std::vector<JobShare> shares_;
  AllocationForecast result_;
};

void check_steps(const AllocationQuery& query) {
  const ObjectiveDef& objective = objective_def(query.objective);
  for (const PoolJob& job : query.jobs)
    if ((objective.needs_steps || job.deadline_s) && !job.steps)
      throw Error(ErrorKind::kInput,
                  fmt::format("job '{}': steps is missing, which {} needs", job.job.name,
                              job.deadline_s
                                  ? "a deadline"
                                  : fmt::format("the objective {}", choice_word(query.objective))));
}

}  // namespace

const ObjectiveDef& objective_def(AllocationObjective objective) {
  return kObjectives[static_cast<size_t>(objective)];
}

void check_objective(const AllocationQuery& query, bool has_deadlines) {
  const ObjectiveDef& objective = objective_def(query.objective);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kInput,
                fmt::format("the objective {} needs {}", choice_word(query.objective), what));
  };
  if (objective.needs_prices &&
      std::any_of(query.pool.begin(), query.pool.end(),
                  [](const PoolKind& kind) { return !kind.price_per_gpu_hour; }))
    refuse("prices: give `price-per-gpu-hour`");
  if (objective.queues && query.whole && query.share)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("with `whole` and the objective {} jobs run one after another, none "
                            "beside another: leave out `share` or `whole`",
                            choice_word(query.objective)));
  if (query.objective == AllocationObjective::kEnergy && query.share)
    throw Error(ErrorKind::kUnsupported,
                "the objective energy needs each GPU for one job: the power of jobs beside each "
                "other is not forecast; leave out `share`");
  if (objective.needs_deadlines && !has_deadlines) refuse("a job with a deadline: give deadline_s");
}

AllocationForecast allocate(const Forecaster& forecaster, const AllocationQuery& query,
                            const ManyOptions& options) {
  check_pool(query);
  check_objective(query, std::any_of(query.jobs.begin(), query.jobs.end(), [](const PoolJob& job) {
                    return job.deadline_s.has_value();
                  }));
  check_steps(query);
  const PoolSpeeds speeds(forecaster, query, options);
  return AllocationResult(query, speeds).take();
}

}  // namespace tilecast
