#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/allocate.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A job with a measured speed on each kind, so that its times are known.
PoolJob measured_job(const std::string& name, double on_v100, double on_k80) {
  PoolJob job;
  job.job.model = load_model_ref("resnet-50");
  job.job.name = name;
  job.steps = 10;
  job.speeds = {{load_gpu_ref("V100").id(), on_v100}, {load_gpu_ref("K80").id(), on_k80}};
  return job;
}

PoolKind kind_of(const GpuRef& gpu, int64_t gpus) {
  PoolKind kind;
  kind.gpu = gpu;
  kind.gpus = gpus;
  return kind;
}

JobArrival arrival_of(const std::string& job, double arrival_s, double steps) {
  JobArrival arrival;
  arrival.job = job;
  arrival.arrival_s = arrival_s;
  arrival.steps = steps;
  return arrival;
}

AllocationQuery measured_pool() {
  AllocationQuery query;
  query.objective = AllocationObjective::kFairness;
  query.jobs = {measured_job("a", 3, 0.7), measured_job("b", 7, 1.3)};
  query.pool = {kind_of(load_gpu_ref("V100"), 1), kind_of(load_gpu_ref("K80"), 2)};
  return query;
}

std::vector<JobArrival> arrivals_from(double first_s) {
  return {arrival_of("a", first_s, 10), arrival_of("b", first_s + 3, 17),
          arrival_of("a", first_s + 5, 13)};
}

TEST(SimulateCluster, TimesCountFromTheFirstArrival) {
  const AllocationQuery query = measured_pool();
  const ClusterSimulation now = simulate_cluster(forecaster(), query, arrivals_from(0)),
                          since_1970 = simulate_cluster(forecaster(), query, arrivals_from(1.7e9));
  ASSERT_EQ(now.policies.size(), since_1970.policies.size());
  for (size_t i = 0; i < now.policies.size(); ++i) {
    EXPECT_GT(now.policies[i].mean_s, 1);
    EXPECT_NEAR(since_1970.policies[i].mean_s, now.policies[i].mean_s, 1e-6);
    EXPECT_NEAR(since_1970.policies[i].makespan_s, now.policies[i].makespan_s, 1e-6);
    EXPECT_NEAR(since_1970.policies[i].utilization, now.policies[i].utilization, 1e-6);
  }
}

/// The first arrival is at 0, so the others have few digits: each job still ends.
TEST(SimulateCluster, EndsWhereTimesHaveFewDigits) {
  std::vector<JobArrival> arrivals = arrivals_from(1e12 - 10);
  arrivals.push_back(arrival_of("b", 0, 10));
  const ClusterSimulation c = simulate_cluster(forecaster(), measured_pool(), arrivals);
  for (const PolicyOutcome& policy : c.policies) {
    EXPECT_GT(policy.mean_s, 0);
    EXPECT_LT(policy.mean_s, 100);
  }
  EXPECT_TRUE(c.warnings.empty());
}

TEST(SimulateCluster, NumbersOutOfRangeNameTheArrival) {
  const auto refuses = [](const JobArrival& arrival, const std::string& message) {
    EXPECT_ERROR(simulate_cluster(forecaster(), measured_pool(), {arrival_of("a", 0, 1), arrival}),
                 kInput, message);
  };
  refuses(arrival_of("b", 1e18, 1),
          "arrival 2 ('b'): arrival_s: expected a number from 0 to 1e+12, found 1e+18");
  refuses(arrival_of("b", -1, 1), "arrival_s: expected a number from 0");
  refuses(arrival_of("b", 0, 1e300), "steps: expected a number from 0.001 to 1e+15, found 1e+300");
  JobArrival late = arrival_of("b", 0, 1), light = late;
  late.deadline_s = 1e300;
  light.weight = 1e-300;
  refuses(late, "deadline_s: expected a number from 1e-09 to 1e+12, found 1e+300");
  refuses(light, "weight: expected a number from 1e-06 to 1e+06, found 1e-300");
}

TEST(SimulateCluster, HasNoWholeJobs) {
  AllocationQuery query = measured_pool();
  query.whole = true;
  EXPECT_ERROR(simulate_cluster(forecaster(), query, arrivals_from(0)), kUnsupported,
               "leave out `whole`");
}

TEST(Allocate, TheLeastEnergyIsThatOfEachJobsBestPlace) {
  AllocationQuery query;
  query.objective = AllocationObjective::kEnergy;
  for (const int64_t batch : {1, 32}) {
    PoolJob job;
    job.job = {.name = fmt::format("batch {}", batch), .model = load_model_ref("gpt2_large")};
    job.job.request.batch = batch;
    job.job.request.execution.dtype = "fp16";
    job.steps = 1000;
    query.jobs.push_back(job);
  }
  query.pool = {kind_of(load_gpu_ref("H100"), 1), kind_of(load_gpu_ref("L4"), 1),
                kind_of(load_gpu_ref("A100"), 1)};
  const AllocationForecast f = allocate(forecaster(), query);
  double least = 0;
  for (const AllocatedJob& job : f.jobs) {
    double best = std::numeric_limits<double>::infinity();
    for (const PlaceOption& option : job.options) {
      ASSERT_TRUE(option.power_w && option.energy_j);
      EXPECT_NEAR(*option.energy_j, *option.power_w * *option.seconds, 1e-6 * *option.energy_j);
      best = std::min(best, *option.energy_j);
    }
    least += best;
  }
  EXPECT_NEAR(*f.value, least, 1e-4 * least);
  EXPECT_FALSE(f.cost);
  query.share = ShareHow::kTimeSlice;
  EXPECT_ERROR(allocate(forecaster(), query), kUnsupported, "leave out `share`");
  query.share.reset();
  EXPECT_ERROR(simulate_cluster(forecaster(), query, {arrival_of("batch 1", 0, 10)}), kUnsupported,
               "leave out the arrivals");
}

TEST(SimulateCluster, SaysWhetherJobsShare) {
  AllocationQuery query = measured_pool();
  const auto says = [&](const std::string& text) {
    const ClusterSimulation c = simulate_cluster(forecaster(), query, arrivals_from(0));
    return std::find(c.assumptions.begin(), c.assumptions.end(), text) != c.assumptions.end();
  };
  EXPECT_TRUE(says("no two jobs share a GPU at a time"));
  query.share = ShareHow::kTimeSlice;
  EXPECT_FALSE(says("no two jobs share a GPU at a time"));
}

TEST(PoolNumbers, OutOfRangeNameTheJobOrTheKind) {
  const auto refuses = [](auto&& change, const std::string& message) {
    AllocationQuery query = measured_pool();
    change(query);
    EXPECT_ERROR(allocate(forecaster(), query), kInput, message);
  };
  refuses([](AllocationQuery& q) { q.jobs[1].weight = 1e300; },
          "job 'b': weight: expected a number from 1e-06 to 1e+06, found 1e+300");
  refuses([](AllocationQuery& q) { q.jobs[1].steps = 1e-300; }, "job 'b': steps: expected");
  refuses([](AllocationQuery& q) { q.jobs[0].deadline_s = 1e13; }, "job 'a': deadline_s: expected");
  refuses([](AllocationQuery& q) { q.jobs[0].speeds.begin()->second = 1e-300; },
          "steps_per_s: expected a number from 1e-09 to 1e+09, found 1e-300");
  refuses([](AllocationQuery& q) { q.jobs[0].gpus = {2'000'000}; },
          "job 'a': gpus: expected numbers from 1 to 1000000, found 2000000");
  refuses([](AllocationQuery& q) { q.pool[1].price_per_gpu_hour = 1e300; },
          "pool: nvidia-k80: price: expected a number from 0 to 1e+06, found 1e+300");
  refuses([](AllocationQuery& q) { q.pool[1].gpus = -1; },
          "pool: nvidia-k80: expected 0 to 1000000 GPUs, found -1");
  refuses([](AllocationQuery& q) { q.jobs[1].dtypes = {"foo"}; },
          "job 'b': dtypes: unknown value 'foo'");
}

TEST(PoolNumbers, SeveralGpusNeedTraining) {
  AllocationQuery query = measured_pool();
  query.pool = {kind_of(load_cluster_gpu_ref("dgx-h100"), 8)};
  query.pool[0].cluster = "dgx-h100";
  query.jobs = {measured_job("a", 1, 1)};
  query.jobs[0].gpus = {2, 8};
  const AllocationForecast f = allocate(forecaster(), query);
  EXPECT_EQ(f.jobs[0].note, "2 GPUs: several GPUs need \"mode\": \"training\"");
}

}  // namespace
}  // namespace tilecast
