#pragma once

// Which job goes where: jobs on a pool of several kinds of GPU, now or as they arrive.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/search.h"
#include "tilecast/share.h"

namespace tilecast {

/// What an allocation is best for (docs/guide/allocate_jobs.md). Speeds of jobs are compared
/// by their fastest place, or by an equal share of the pool.
enum class AllocationObjective : uint8_t {
  kThroughput,  ///< the sum of weight x speed / speed at the fastest place
  kMakespan,    ///< the time until the last job ends
  kFairness,    ///< the least of speed / (weight x speed with an equal share of the pool)
  kFinishTime,  ///< the largest of a job's time to its end over that with an equal share
  kCost,        ///< the cost of all steps; deadlines are kept first
  kDeadline,    ///< the weights of the jobs that meet their deadlines
  kEnergy       ///< the energy of all steps; deadlines are kept first
};

constexpr auto choice_words(AllocationObjective) {
  return std::array<std::string_view, 7>{"throughput", "makespan", "fairness", "finish-time",
                                         "cost",       "deadline", "energy"};
}

/// A job of a pool.
struct PoolJob {
  Job job;
  double weight = 1;
  std::optional<double> steps;  ///< to do; not given: it goes on without end
  std::optional<double> deadline_s;
  std::vector<int64_t> gpus;  ///< numbers of GPUs that it may have; empty: as its request says
  std::vector<std::string> dtypes;       ///< that it may use; empty: as its request says
  std::map<std::string, double> speeds;  ///< measured alone, steps/s by the GPU's id
};

/// GPUs of one kind.
struct PoolKind {
  GpuRef gpu;
  std::string cluster;  ///< whose GPUs they are; "": jobs of several GPUs have no links
  int64_t gpus = 0;
  std::optional<double> price_per_gpu_hour;
  std::optional<GpuPrice> gpu_price = {};  ///< where that is from a list or a table
  /// How many times as long as `loader_s` of all jobs the hosts of these GPUs take.
  double host_factor = 1;
};

/// A job, or another one like it, that arrives.
struct JobArrival {
  std::string job;  ///< its name, or that of a job that it is like
  double arrival_s = 0;
  /// Not given: as of that job. The deadline counts from the arrival.
  std::optional<double> steps, deadline_s, weight;
};

struct AllocationQuery {
  std::vector<PoolJob> jobs;
  std::vector<PoolKind> pool;
  AllocationObjective objective = AllocationObjective::kThroughput;
  std::optional<ShareHow> share;  ///< how two jobs share a GPU; not given: none do
  bool whole = false;             ///< each job at one place, not in turns; not over time
};

/// One place where a job can run to its end.
struct PlaceOption {
  std::string gpu, dtype;
  int64_t gpus = 1;
  std::optional<Interval> steps_per_s;
  std::optional<double> seconds, cost;
  std::optional<double> power_w, energy_j;
  int64_t memory_bytes = 0;
  bool fits = true;
  std::optional<std::string> error;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PlaceOption;
    field.is("PlaceOption", "One place where a job can run, and what it would give there alone.");
    field("gpu", "", "kind of the pool", &Self::gpu);
    field("gpus", "", "how many it takes", &Self::gpus);
    field("dtype", "", "that it uses; empty: as the model", &Self::dtype);
    field.interval({"steps_per_s", "steps_per_s_low", "steps_per_s_high"}, "1/s",
                   "speed alone; null: it cannot run there", &Self::steps_per_s);
    field("seconds", "s", "time of all its steps there; null: it has no number of steps",
          &Self::seconds);
    field("cost", "", "of all its steps there, in the unit of the prices", &Self::cost);
    field("power_w", "W", "of all its GPUs' boards there; null: it is not forecast",
          &Self::power_w);
    field("energy_j", "J", "of all its steps there; null: not forecast, or no number of steps",
          &Self::energy_j);
    field("memory_bytes", "bytes", "peak on each GPU", &Self::memory_bytes);
    field("fits", "", "whether the memory suffices", &Self::fits);
    field("error", "", "why there is no forecast", &Self::error);
  }
};

/// A place that a job has been given for a share of the time.
struct AllocatedPlace {
  std::string job, gpu, dtype, beside;
  int64_t gpus = 1;
  double share = 0, steps_per_s = 0;
  double begin_s = 0;
  std::optional<double> end_s;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AllocatedPlace;
    field.is("AllocatedPlace", "A place that a job has for a share of the time.");
    field("job", "", "its name", &Self::job);
    field("gpu", "", "kind of the pool", &Self::gpu);
    field("gpus", "", "how many it takes", &Self::gpus);
    field("dtype", "", "that it uses; empty: as the model", &Self::dtype);
    field("beside", "", "name of the job that shares the GPU; empty: none", &Self::beside);
    field("share", "", "of the time from begin_s to end_s", &Self::share);
    field("steps_per_s", "1/s", "while it runs there", &Self::steps_per_s);
    field("begin_s", "s", "from now", &Self::begin_s);
    field("end_s", "s", "null: as long as the job runs", &Self::end_s);
  }
};

struct AllocatedJob {
  std::string name, model;
  double weight = 1;
  std::vector<AllocatedPlace> places;
  double time_share = 0, steps_per_s = 0, relative_speed = 0;
  std::optional<double> finish_s, cost, deadline_s;
  std::optional<bool> meets_deadline;
  std::vector<PlaceOption> options;
  std::string note;

  bool fits_nowhere() const { return relative_speed == 0 && options_fit() == 0; }
  size_t options_fit() const {
    size_t count = 0;
    for (const PlaceOption& option : options) count += option.steps_per_s && option.fits ? 1 : 0;
    return count;
  }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AllocatedJob;
    field.is("AllocatedJob", "A job, its places, and what others would give.");
    field("name", "", "of the job", &Self::name);
    field("model", "", "name of the model", &Self::model);
    field("weight", "", "in the objective", &Self::weight);
    field("places", "", "where it runs; empty: nowhere", &Self::places);
    field("time_share", "", "share of the time until its end in which it runs", &Self::time_share);
    field("steps_per_s", "1/s", "mean until its end", &Self::steps_per_s);
    field("relative_speed", "", "that over the speed at its fastest place, alone",
          &Self::relative_speed);
    field("finish_s", "s", "when its steps are done, if it keeps its places; null: never",
          &Self::finish_s);
    field("cost", "", "until then, in the unit of the prices", &Self::cost);
    field("deadline_s", "s", "from now; null: none", &Self::deadline_s);
    field("meets_deadline", "", "null: it has none", &Self::meets_deadline);
    field("options", "", "each place where it could run, alone", &Self::options);
    field("note", "", "why it runs nowhere or is late, and what to do; empty: nothing is wrong",
          &Self::note);
  }
};

/// The GPUs of one kind in an allocation.
struct PoolUse {
  std::string gpu, gpu_name;
  int64_t gpus = 0;
  std::optional<double> price_per_gpu_hour;
  std::optional<GpuPrice> gpu_price;
  double used_gpus = 0;

  double utilization() const { return gpus > 0 ? used_gpus / static_cast<double>(gpus) : 0; }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PoolUse;
    field.is("PoolUse", "GPUs of one kind, and how many are in use.");
    field("gpu", "", "as the pool names it", &Self::gpu);
    field("gpu_name", "", "the product name", &Self::gpu_name);
    field("gpus", "", "of the pool", &Self::gpus);
    field("price_per_gpu_hour", "", "null: not given", &Self::price_per_gpu_hour);
    field.if_set("gpu_price", "", "the row of that price, where prices are by GPU",
                 &Self::gpu_price);
    field("used_gpus", "", "mean number in use until the last job ends", &Self::used_gpus);
    field("utilization", "", "of them in use", [](const Self& x) { return x.utilization(); });
  }
};

/// An allocation.
struct AllocationForecast {
  std::string objective;
  std::optional<double> value, blind_value;
  bool whole = false, proven = true;
  std::vector<AllocatedJob> jobs;
  std::vector<PoolUse> pool;
  std::optional<double> cost, makespan_s;
  std::vector<std::string> assumptions, warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AllocationForecast;
    field.is_document("AllocationForecast", "Which job goes where.");
    field("objective", "", "what it is best for", &Self::objective,
          {"throughput", "makespan", "fairness", "finish-time", "cost", "deadline", "energy"});
    field("value", "",
          "of the objective: throughput a sum of relative speeds, makespan seconds, fairness and "
          "finish-time ratios to an equal share, cost in the unit of the prices, deadline a sum of "
          "weights, energy joules; null: no job can run",
          &Self::value);
    field("blind_value", "",
          "the value of the best allocation that does not tell kinds of GPU apart: it divides each "
          "job's time among them as the pool is divided; null: with whole",
          &Self::blind_value);
    field("whole", "", "each job has one place, not in turns with others", &Self::whole);
    field("proven", "", "the solver has proven that no allocation is better by more than 0.5 %",
          &Self::proven);
    field("jobs", "", "in the order of the question", &Self::jobs);
    field("pool", "", "the kinds of GPU", &Self::pool);
    field("cost", "",
          "of all steps, in the unit of the prices; null: no prices, or jobs without end",
          &Self::cost);
    field("makespan_s", "s", "when the last job ends; null: one goes on without end",
          &Self::makespan_s);
    field("assumptions", "", "what matters to the numbers, given or by default",
          &Self::assumptions);
    field("warnings", "", "what is not certain, and what to do", &Self::warnings);
  }
};

/// The best allocation of all jobs now. Throws Error{kInput} for an empty pool, no jobs, and
/// numbers that contradict each other; Error{kUnsupported} if the solver cannot be loaded. The
/// result does not depend on the number of threads.
AllocationForecast allocate(const Forecaster& forecaster, const AllocationQuery& query,
                            const ManyOptions& options = {});

/// What a job had of a kind for some time.
struct ClusterSpan {
  std::string job;
  size_t kind = 0;
  double begin_s = 0, end_s = 0, gpus = 0;
};

/// Use of one kind under a policy.
struct KindUse {
  std::string gpu;
  double utilization = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = KindUse;
    field.is("KindUse", "Use of one kind of GPU.");
    field("gpu", "", "as the pool names it", &Self::gpu);
    field("utilization", "", "share of its GPUs in use, until the last job ends",
          &Self::utilization);
  }
};

/// What a policy makes of the arrivals.
struct PolicyOutcome {
  std::string policy;  ///< "fifo", "blind", or the objective
  double mean_s = 0, median_s = 0, p95_s = 0, makespan_s = 0, utilization = 0;
  std::optional<double> cost;
  int64_t met_deadlines = 0;
  std::vector<KindUse> kinds;
  std::vector<ClusterSpan> spans;  ///< for the picture

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PolicyOutcome;
    field.is("PolicyOutcome", "What a policy makes of the arrivals.");
    field("policy", "", "fifo, blind or the objective", &Self::policy);
    field("mean_s", "s", "time of a job from its arrival to its end, mean", &Self::mean_s);
    field("median_s", "s", "likewise", &Self::median_s);
    field("p95_s", "s", "95th percentile", &Self::p95_s);
    field("makespan_s", "s", "from the first arrival to the end of the last job",
          &Self::makespan_s);
    field("utilization", "", "share of all GPUs in use until then", &Self::utilization);
    field("cost", "", "of the GPU time used, in the unit of the prices", &Self::cost);
    field("met_deadlines", "", "jobs that end by their deadline", &Self::met_deadlines);
    field("kinds", "", "by kind of GPU", &Self::kinds);
  }
};

/// A cluster over time.
struct ClusterSimulation {
  std::string objective;
  int64_t arrivals = 0, deadlines = 0;
  std::vector<PolicyOutcome> policies;
  std::vector<PoolUse> pool;
  std::vector<std::string> assumptions, warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ClusterSimulation;
    field.is_document("ClusterSimulation", "Jobs that arrive at a pool, under several policies.");
    field("objective", "", "of the last policy", &Self::objective,
          {"throughput", "makespan", "fairness", "finish-time", "cost", "deadline", "energy"});
    field("arrivals", "", "jobs that arrive and can run", &Self::arrivals);
    field("deadlines", "", "jobs with a deadline", &Self::deadlines);
    field("policies", "",
          "first come, first served; the objective without telling kinds apart; the objective",
          &Self::policies);
    field("assumptions", "", "what matters to the numbers, given or by default",
          &Self::assumptions);
    field("warnings", "", "what is not certain, and what to do", &Self::warnings);
  }
};

/// The pool over time, as jobs arrive: under first come, first served; under the objective without
/// telling kinds of GPU apart; and under the objective. Throws as `allocate`, Error{kInput} for an
/// arrival of an unknown job, without a number of steps or with numbers out of range, and
/// Error{kUnsupported} for `whole`.
ClusterSimulation simulate_cluster(const Forecaster& forecaster, const AllocationQuery& query,
                                   const std::vector<JobArrival>& arrivals,
                                   const ManyOptions& options = {});

}  // namespace tilecast
