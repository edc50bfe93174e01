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

/// The arrivals of jobs that can run somewhere, by time.
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
    if (!(std::isfinite(arriving.arrival_s) && arriving.arrival_s >= 0))
      fail(fmt::format("arrival_s: expected 0 or more, found {}", arriving.arrival_s));
    for (const auto& [name, value] :
         {std::pair{"steps", arriving.steps}, {"weight", arriving.weight}})
      if (!(std::isfinite(value) && value > 0))
        fail(fmt::format("{}: expected a number above 0, found {}", name, value));
    if (!(arriving.deadline_s > 0))
      fail(fmt::format("deadline_s: expected a number above 0, found {}", arriving.deadline_s));
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
  return jobs;
}

/// Spans of one job on one kind that follow each other with the same number of GPUs are one.
std::vector<ClusterSpan> spans_of(const SimulatedPool& simulated, const PoolOverTime& pool,
                                  const AllocationQuery& query) {
  std::vector<SimulatedPool::Span> all = simulated.spans;
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

PolicyOutcome outcome_of(const std::string& policy, const SimulatedPool& simulated,
                         const PoolOverTime& pool, const AllocationQuery& query) {
  PolicyOutcome outcome{.policy = policy, .cost = {}, .kinds = {}, .spans = {}};
  std::vector<double> times;
  for (size_t j = 0; j < pool.jobs.size(); ++j) {
    const double time = simulated.ends_s[j] - pool.jobs[j].arrival_s;
    constexpr double kRounding = 1e-6;
    if (pool.jobs[j].deadline_s < kNoEnd && time <= pool.jobs[j].deadline_s * (1 + kRounding))
      ++outcome.met_deadlines;
    outcome.mean_s += time / static_cast<double>(pool.jobs.size());
    times.push_back(time);
  }
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
  outcome.spans = spans_of(simulated, pool, query);
  return outcome;
}

}  // namespace

ClusterSimulation simulate_cluster(const Forecaster& forecaster, const AllocationQuery& query,
                                   const std::vector<JobArrival>& arrivals,
                                   const ManyOptions& options) {
  check_pool(query);
  const ObjectiveDef& objective = objective_def(query.objective);
  const PoolSpeeds speeds(forecaster, query, options);
  ClusterSimulation result{.objective = std::string(objective.name),
                           .policies = {},
                           .pool = {},
                           .assumptions = {},
                           .warnings = speeds.warnings()};
  const PoolOverTime pool{
      .kinds = speeds.kinds(),
      .jobs = arriving_jobs(query, speeds, arrivals, result.warnings),
      .columns = [&](const std::vector<size_t>& types) { return speeds.columns(types); },
      .whole = query.whole};
  result.arrivals = static_cast<int64_t>(pool.jobs.size());
  result.deadlines = std::count_if(pool.jobs.begin(), pool.jobs.end(),
                                   [](const ArrivingJob& job) { return job.deadline_s < kNoEnd; });
  check_objective(query, result.deadlines > 0);
  for (const PoolKind& kind : query.pool)
    result.pool.push_back({.gpu = name_of(kind),
                           .gpu_name = kind.gpu.content->device.name,
                           .gpus = kind.gpus,
                           .price_per_gpu_hour = kind.price_per_gpu_hour});
  PoolOverTime blind = pool;
  blind.whole = false;
  const std::string name(objective.name);
  result.policies.push_back(outcome_of("fifo", simulate_first_come(pool), pool, query));
  result.policies.push_back(outcome_of(
      "blind", simulate_objective(blind, objective.solve, Sees::kPoolAlone), pool, query));
  result.policies.push_back(
      outcome_of(name, simulate_objective(pool, objective.solve, Sees::kKinds), pool, query));
  result.assumptions.push_back("jobs move between GPUs at no cost, whenever one arrives or ends");
  result.assumptions.push_back(fmt::format(
      "blind: {} without telling kinds apart, each job's time divided among them as the pool is",
      name));
  return result;
}

}  // namespace tilecast
