// A pool over time.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "allocation/simulation.h"
#include "base/quantile.h"
#include "base/text.h"
#include "many/objectives.h"
#include "many/pool_speeds.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The arrivals of jobs that can run somewhere, by time, which counts from the first one.
std::vector<ArrivingJob> arriving_jobs(const AllocationQuery& query, const PoolSpeeds& speeds,
                                       const std::vector<JobArrival>& arrivals,
                                       std::vector<std::string>& warnings) {
  std::map<std::string_view, size_t> by_name;
  for (size_t j = 0; j < query.jobs.size(); ++j) by_name.emplace(query.jobs[j].job.name, j);
  std::vector<ArrivingJob> jobs;
  std::map<size_t, size_t> left_out;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const JobArrival& arrival = arrivals[i];
    const auto fail = [&](const std::string& what) {
      throw Error(ErrorKind::kInput, fmt::format("arrival {}: {}", i + 1, what));
    };
    const auto found = by_name.find(arrival.job);
    if (found == by_name.end()) {
      std::vector<std::string> names;
      for (const auto& [name, j] : by_name) names.emplace_back(name);
      fail(fmt::format("no job is called '{}'{}", printable(arrival.job),
                       did_you_mean(arrival.job, names)));
    }
    const PoolJob& job = query.jobs[found->second];
    const std::optional<double> steps = arrival.steps ? arrival.steps : job.steps;
    if (!steps) fail(fmt::format("job '{}' states no number of steps", job.job.name));
    const ArrivingJob arriving{
        .type = found->second,
        .arrival_s = arrival.arrival_s,
        .steps = *steps,
        .deadline_s = arrival.deadline_s.value_or(job.deadline_s.value_or(kNoEnd)),
        .weight = arrival.weight.value_or(job.weight)};
    const std::string where = fmt::format("arrival {} ('{}')", i + 1, job.job.name);
    check_number(where, kArrivalRange, arriving.arrival_s);
    check_number(where, kStepsRange, arriving.steps);
    check_number(where, kWeightRange, arriving.weight);
    if (arriving.deadline_s < kNoEnd || arrival.deadline_s)
      check_number(where, kDeadlineRange, arriving.deadline_s);
    if (speeds.fits_somewhere(found->second))
      jobs.push_back(arriving);
    else
      ++left_out[found->second];
  }
  for (const auto& [job, count] : left_out)
    warnings.push_back(fmt::format("{} arrival{} of '{}' left out, which fits nowhere", count,
                                   count == 1 ? " is" : "s are", query.jobs[job].job.name));
  if (jobs.empty()) throw Error(ErrorKind::kInput, "no job arrives that fits the pool");
  std::stable_sort(jobs.begin(), jobs.end(), [](const ArrivingJob& a, const ArrivingJob& b) {
    return a.arrival_s < b.arrival_s;
  });
  // Seconds since 1970 have no digits left for short jobs.
  const double first_s = jobs.front().arrival_s;
  for (ArrivingJob& job : jobs) job.arrival_s -= first_s;
  return jobs;
}

/// Spans of one job on one kind that follow each other with the same number of GPUs are one.
std::vector<ClusterSpan> spans_of(std::vector<SimulatedPool::Span> all, const PoolOverTime& pool,
                                  const AllocationQuery& query) {
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.job, a.kind, a.begin_s) < std::tuple(b.job, b.kind, b.begin_s);
  });
  constexpr double kSame = 1e-6;
  std::vector<ClusterSpan> spans;
  const SimulatedPool::Span* before = nullptr;
  for (const SimulatedPool::Span& span : all) {
    if (before != nullptr && before->job == span.job && before->kind == span.kind &&
        spans.back().end_s >= span.begin_s && std::abs(spans.back().gpus - span.gpus) < kSame)
      spans.back().end_s = span.end_s;
    else
      spans.push_back({query.jobs[pool.jobs[span.job].type].job.name, span.kind, span.begin_s,
                       span.end_s, span.gpus});
    before = &span;
  }
  return spans;
}

PolicyOutcome outcome_of(const std::string& policy, SimulatedPool simulated,
                         const PoolOverTime& pool, const AllocationQuery& query,
                         std::vector<std::string>& warnings) {
  PolicyOutcome outcome{.policy = policy, .cost = {}, .kinds = {}, .spans = {}};
  std::vector<double> times;
  for (size_t j = 0; j < pool.jobs.size(); ++j) {
    if (simulated.ends_s[j] == kNoEnd) continue;
    const double time = simulated.ends_s[j] - pool.jobs[j].arrival_s;
    constexpr double kRounding = 1e-6;
    if (pool.jobs[j].deadline_s < kNoEnd && time <= pool.jobs[j].deadline_s * (1 + kRounding))
      ++outcome.met_deadlines;
    times.push_back(time);
  }
  if (times.empty())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("policy {}: none of {} jobs ever ends", policy, pool.jobs.size()));
  for (const double time : times) outcome.mean_s += time / static_cast<double>(times.size());
  if (times.size() < pool.jobs.size())
    warnings.push_back(fmt::format("{}: {} of {} jobs never end; its times are of the others",
                                   policy, pool.jobs.size() - times.size(), pool.jobs.size()));
  if (simulated.unproven > 0)
    warnings.push_back(fmt::format(
        "{}: the solver ended before it proved that no allocation is better, at {} of {} events",
        policy, simulated.unproven, simulated.divisions));
  outcome.median_s = quantile(times, 0.5);
  outcome.p95_s = quantile(times, 0.95);
  outcome.makespan_s = simulated.makespan_s;
  double used = 0, gpus = 0, cost = 0;
  bool has_prices = true;
  for (size_t k = 0; k < query.pool.size(); ++k) {
    const PoolKind& kind = query.pool[k];
    const auto count = static_cast<double>(kind.gpus);
    used += simulated.gpu_s[k];
    gpus += count;
    has_prices = has_prices && kind.price_per_gpu_hour;
    cost += simulated.gpu_s[k] * kind.price_per_gpu_hour.value_or(0) / 3600;
    outcome.kinds.push_back(
        {name_of(kind), count > 0 ? simulated.gpu_s[k] / (count * simulated.makespan_s) : 0});
  }
  outcome.utilization = used / (gpus * simulated.makespan_s);
  if (has_prices) outcome.cost = cost;
  outcome.spans = spans_of(std::move(simulated.spans), pool, query);
  return outcome;
}

}  // namespace

ClusterSimulation simulate_cluster(const Forecaster& forecaster, const AllocationQuery& query,
                                   const std::vector<JobArrival>& arrivals,
                                   const ManyOptions& options) {
  check_pool(query);
  if (query.whole)
    throw Error(ErrorKind::kUnsupported,
                "`whole`: arrivals are simulated with shares of time; leave out `whole`");
  const ObjectiveDef& objective = objective_def(query.objective);
  const PoolSpeeds speeds(forecaster, query, options);
  ClusterSimulation result{.objective = std::string(choice_word(query.objective)),
                           .policies = {},
                           .pool = {},
                           .assumptions = {},
                           .warnings = speeds.warnings()};
  const PoolOverTime pool{
      .kinds = speeds.kinds(),
      .jobs = arriving_jobs(query, speeds, arrivals, result.warnings),
      .columns = [&](const std::vector<size_t>& types) { return speeds.columns(types); }};
  result.arrivals = static_cast<int64_t>(pool.jobs.size());
  result.deadlines = std::count_if(pool.jobs.begin(), pool.jobs.end(),
                                   [](const ArrivingJob& job) { return job.deadline_s < kNoEnd; });
  if (query.objective == AllocationObjective::kEnergy)
    throw Error(ErrorKind::kUnsupported,
                "the objective energy is for jobs that are there now: leave out the arrivals");
  check_objective(query, result.deadlines > 0);
  result.pool = unused(query.pool);
  const std::string name(choice_word(query.objective));
  const auto add = [&](const std::string& policy, SimulatedPool simulated) {
    result.policies.push_back(
        outcome_of(policy, std::move(simulated), pool, query, result.warnings));
  };
  add("fifo", simulate_first_come(pool));
  const std::optional<Divide> alike = query.share ? std::nullopt : objective.alike;
  add("blind", simulate_objective(pool, objective.solve, Sees::kPoolAlone, alike));
  add(name, simulate_objective(pool, objective.solve, Sees::kKinds, alike));
  result.assumptions.push_back(
      "jobs take turns on GPUs and move between kinds at no cost, whenever one arrives or ends");
  result.assumptions.push_back(query.share ? fmt::format("under {} up to two jobs share a GPU ({})",
                                                         name, choice_word(*query.share))
                                           : "no two jobs share a GPU at a time");
  result.assumptions.push_back("fifo: each job has its GPUs whole until it ends, as in a queue");
  result.assumptions.push_back(fmt::format(
      "blind: {} without telling kinds apart, each job's time divided among them as the pool is",
      name));
  return result;
}

}  // namespace tilecast
