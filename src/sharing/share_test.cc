// Jobs beside each other, on random jobs and GPUs.

#include "tilecast/share.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/rng.h"
#include "scenario/internal.h"
#include "test_forecaster.h"

namespace tilecast {
namespace {

constexpr ShareHow kByTurns[] = {ShareHow::kTimeSlice, ShareHow::kMps, ShareHow::kStreams};

template <typename List>
auto one_of(Rng& rng, const List& list) {
  return *(std::begin(list) + rng.below(std::size(list)));
}

Job random_job(Rng& rng, const std::string& name) {
  static const ModelRef kModels[] = {load_model_ref("gpt2"), load_model_ref("bert-base"),
                                     load_model_ref("resnet-50")};
  static constexpr int64_t kBatches[] = {1, 2, 4, 16};
  Job job{.name = name, .model = one_of(rng, kModels)};
  job.request.mode = rng.below(2) == 0 ? Mode::kTraining : Mode::kInference;
  job.request.batch = one_of(rng, kBatches);
  if (job.model.name() != "resnet-50") job.request.seq = 128;
  if (rng.below(3) == 0) job.bounds.loader_s = 0.02 * rng.uniform();
  if (job.bounds.loader_s && rng.below(2) == 0) job.bounds.prefetch = 4;
  if (rng.below(5) == 0) job.bounds.processes = 2;
  return job;
}

GpuRef random_gpu(Rng& rng) {
  static const char* const kGpus[] = {"V100", "A100", "H100", "T4", "L40S"};
  return load_gpu_ref(one_of(rng, kGpus));
}

std::vector<Job> random_jobs(Rng& rng, size_t count) {
  std::vector<Job> jobs;
  for (size_t i = 0; i < count; ++i) jobs.push_back(random_job(rng, fmt::format("job {}", i)));
  return jobs;
}

TEST(Share, OneJobAloneIsTheForecast) {
  Rng rng(1);
  for (int draw = 0; draw < 30; ++draw) {
    Job job = random_job(rng, "job");
    job.bounds = {};
    const GpuRef gpu = random_gpu(rng);
    const double latency = forecaster().forecast(job.model, gpu, job.request).latency_s.value;
    for (const ShareHow how : kByTurns) {
      const ShareForecast f = share_gpu(forecaster(), gpu, {.jobs = {job}, .how = how});
      EXPECT_EQ(f.jobs[0].relative_speed.value, 1);
      EXPECT_DOUBLE_EQ(f.jobs[0].steps_per_s.value, 1 / latency);
    }
  }
}

TEST(Share, NobodyIsFasterThanAloneAndOrderDoesNotMatter) {
  Rng rng(2);
  for (int draw = 0; draw < 30; ++draw) {
    const std::vector<Job> jobs = random_jobs(rng, 2 + rng.below(3));
    const GpuRef gpu = random_gpu(rng);
    const ShareHow how = one_of(rng, kByTurns);
    const ShareForecast f = share_gpu(forecaster(), gpu, {.jobs = jobs, .how = how});
    std::vector<Job> reversed(jobs.rbegin(), jobs.rend());
    const ShareForecast r = share_gpu(forecaster(), gpu, {.jobs = reversed, .how = how});
    for (size_t i = 0; i < jobs.size(); ++i) {
      const SharedJob& job = f.jobs[i];
      EXPECT_LE(job.relative_speed.high, 1);
      EXPECT_GE(job.relative_speed.value, job.relative_speed.low);
      EXPECT_LE(job.relative_speed.value, job.relative_speed.high);
      EXPECT_GT(job.relative_speed.low, 0);
      EXPECT_LE(job.steps_per_s.value, 1 / job.alone.step_s.value * (1 + 1e-12));
      EXPECT_NEAR(r.jobs[jobs.size() - 1 - i].relative_speed.value, job.relative_speed.value, 1e-7);
    }
  }
}

TEST(Share, CopiesShareEvenly) {
  Rng rng(3);
  for (int draw = 0; draw < 20; ++draw) {
    const Job job = random_job(rng, "copy 0");
    std::vector<Job> copies(2 + rng.below(4), job);
    for (size_t i = 0; i < copies.size(); ++i) copies[i].name = fmt::format("copy {}", i);
    const ShareForecast f =
        share_gpu(forecaster(), random_gpu(rng), {.jobs = copies, .how = one_of(rng, kByTurns)});
    for (const SharedJob& copy : f.jobs)
      EXPECT_NEAR(copy.relative_speed.value, f.jobs[0].relative_speed.value, 1e-7);
    EXPECT_LE(f.sum_of_relative_speeds.value * f.jobs[0].alone.gpu_share, 1.1);
  }
}

/// The GPU with `factor` times the rates of its units and of its memory, and the power for them.
GpuRef faster(const GpuRef& gpu, double factor) {
  Device device = gpu.content->device;
  device = at_clock(device, device.gpu().boost_clock_hz * factor);
  device.memory_bytes_per_s *= factor;
  std::get<Gpu>(device.chip).board_power_w *= factor;
  return ref_of_device(std::move(device));
}

TEST(Share, MoreOfEveryResourceNeverHurtsJobsThatWaitForTheGpuOnly) {
  Rng rng(4);
  int judged = 0;
  for (int draw = 0; draw < 300; ++draw) {
    std::vector<Job> jobs = random_jobs(rng, 2);
    for (Job& job : jobs) job.bounds = {};
    const GpuRef gpu = random_gpu(rng);
    const ShareHow how = one_of(rng, kByTurns);
    const ShareForecast f = share_gpu(forecaster(), gpu, {.jobs = jobs, .how = how});
    const ShareForecast more =
        share_gpu(forecaster(), faster(gpu, 1.3), {.jobs = jobs, .how = how});
    const auto waits_for_gpu = [](const SharedJob& job) {
      return job.alone.gpu_s.value > 0.95 * job.alone.step_s.value;
    };
    if (!std::all_of(more.jobs.begin(), more.jobs.end(), waits_for_gpu)) continue;
    ++judged;
    for (size_t i = 0; i < jobs.size(); ++i)
      EXPECT_GE(more.jobs[i].steps_per_s.value, f.jobs[i].steps_per_s.value)
          << jobs[i].model.name() << " on " << gpu.id();
  }
  EXPECT_GT(judged, 20);
}

// A job whose own turns become shorter gets less of the GPU beside one that waits for its host,
// whose turns do not.
TEST(Share, AFasterGpuMayHurtAJobBesideOneThatWaitsForItsHost_KnownWrong) {
  Rng rng(5);
  double worst = 1;
  for (int draw = 0; draw < 300; ++draw) {
    const std::vector<Job> jobs = random_jobs(rng, 2);
    const GpuRef gpu = random_gpu(rng);
    const ShareHow how = one_of(rng, kByTurns);
    const ShareForecast f = share_gpu(forecaster(), gpu, {.jobs = jobs, .how = how});
    const ShareForecast more =
        share_gpu(forecaster(), faster(gpu, 1.3), {.jobs = jobs, .how = how});
    for (size_t i = 0; i < jobs.size(); ++i)
      worst = std::min(worst, more.jobs[i].steps_per_s.value / f.jobs[i].steps_per_s.value);
  }
  EXPECT_LT(worst, 1);
  EXPECT_GT(worst, 0.85);
}

TEST(Share, MpsIsNotBelowTimeSlicingForJobsThatFillHalfTheGpu) {
  Rng rng(5);
  int judged = 0;
  for (int draw = 0; draw < 400; ++draw) {
    std::vector<Job> jobs = random_jobs(rng, 2);
    for (Job& job : jobs) {
      job.request.batch = 1;
      job.request.mode = Mode::kInference;
    }
    const GpuRef gpu = random_gpu(rng);
    const ShareForecast mps = share_gpu(forecaster(), gpu, {.jobs = jobs, .how = ShareHow::kMps});
    if (mps.jobs[0].alone.sm_share > 0.5 || mps.jobs[1].alone.sm_share > 0.5) continue;
    ++judged;
    const ShareForecast slices =
        share_gpu(forecaster(), gpu, {.jobs = jobs, .how = ShareHow::kTimeSlice});
    EXPECT_GE(mps.sum_of_relative_speeds.value, slices.sum_of_relative_speeds.value - 1e-4)
        << jobs[0].model.name() << " and " << jobs[1].model.name() << " on " << gpu.id();
  }
  EXPECT_GT(judged, 5);
}

}  // namespace
}  // namespace tilecast
