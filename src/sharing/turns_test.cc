// The law of turns on random jobs.

#include "sharing/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace tilecast {
namespace {

constexpr int kDraws = 50;
constexpr double kRounding = 1e-7;

double log_uniform(Rng& rng, double low, double high) {
  return low * std::pow(high / low, rng.uniform());
}

TurnTaker random_taker(Rng& rng) {
  TurnTaker job{.share = 0.02 + 0.979 * rng.uniform(),
                .turn_s = log_uniform(rng, 1e-5, 5e-2),
                .processes = rng.below(4) == 0 ? 4 : 1};
  job.held_s = job.turn_s * log_uniform(rng, 1, 1000);
  if (rng.below(3) == 0) job.depth = 1 + 3 * rng.uniform();
  return job;
}

std::vector<TurnTaker> random_takers(Rng& rng, size_t most) {
  std::vector<TurnTaker> jobs(1 + rng.below(most));
  for (TurnTaker& job : jobs) job = random_taker(rng);
  return jobs;
}

TEST(Turns, OneJobIsAlone) {
  Rng rng(1);
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<double> speeds = speeds_by_turns(std::vector{random_taker(rng)});
    EXPECT_EQ(speeds, std::vector<double>{1.0});
  }
  EXPECT_TRUE(speeds_by_turns({}).empty());
}

TEST(Turns, NobodyIsFasterThanAloneAndTheGpuIsNotUsedTwice) {
  Rng rng(2);
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<TurnTaker> jobs = random_takers(rng, 5);
    const std::vector<double> speeds = speeds_by_turns(jobs);
    double used = 0;
    for (size_t j = 0; j < jobs.size(); ++j) {
      EXPECT_GT(speeds[j], 0);
      EXPECT_LE(speeds[j], 1);
      used += speeds[j] * jobs[j].share;
    }
    // What is not a chain meets jobs by probabilities, which is exact on saturated GPUs only.
    EXPECT_LE(used, jobs.size() <= 2 ? 1 + kRounding : 1.1) << "draw " << i;
  }
}

TEST(Turns, CopiesShareEvenly) {
  Rng rng(3);
  for (int i = 0; i < kDraws; ++i) {
    const size_t copies = 2 + rng.below(4);
    TurnTaker job = random_taker(rng);
    const std::vector<double> speeds = speeds_by_turns(std::vector<TurnTaker>(copies, job));
    for (const double speed : speeds) EXPECT_NEAR(speed, speeds.front(), kRounding);
    job.share = 0.999;  // wants the GPU all the time
    const auto n = static_cast<double>(copies);
    for (const double speed : speeds_by_turns(std::vector<TurnTaker>(copies, job)))
      EXPECT_NEAR(speed * n, 1, 0.02);
  }
}

TEST(Turns, OrderOfJobsDoesNotMatter) {
  Rng rng(4);
  for (int i = 0; i < kDraws; ++i) {
    std::vector<TurnTaker> jobs = random_takers(rng, 5);
    std::vector<size_t> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    rng.shuffle(order);
    std::vector<TurnTaker> shuffled;
    for (const size_t j : order) shuffled.push_back(jobs[j]);
    const std::vector<double> speeds = speeds_by_turns(jobs), again = speeds_by_turns(shuffled);
    for (size_t j = 0; j < order.size(); ++j) EXPECT_NEAR(again[j], speeds[order[j]], kRounding);
  }
}

TEST(Turns, APartnerThatWantsMoreSlowsMore) {
  Rng rng(5);
  for (int i = 0; i < kDraws; ++i) {
    const TurnTaker job = random_taker(rng);
    TurnTaker partner = random_taker(rng);
    partner.share *= 0.9;
    const double before = speeds_by_turns(std::vector{job, partner})[0];
    partner.share = std::min(0.999, partner.share * 1.1);
    EXPECT_LE(speeds_by_turns(std::vector{job, partner})[0], before + kRounding) << "draw " << i;
  }
}

/// A job whose GPU is `factor` times as fast: the host takes its time as before.
TurnTaker on_faster_gpu(const TurnTaker& job, double factor) {
  TurnTaker faster = job;
  faster.held_s /= factor;
  faster.turn_s /= factor;
  faster.share = job.share / factor / (1 - job.share + job.share / factor);
  return faster;
}

TEST(Turns, AFasterGpuSlowsNobody) {
  Rng rng(6);
  for (int i = 0; i < kDraws; ++i) {
    const double factor = 1 + rng.uniform();
    std::vector<TurnTaker> jobs = {random_taker(rng), random_taker(rng)}, faster;
    // A step of jobs in lockstep is the host's time and the GPU's.
    for (TurnTaker& job : jobs) {
      job.depth = 1;
      job.processes = 1;
      faster.push_back(on_faster_gpu(job, factor));
    }
    const std::vector<double> slow = speeds_by_turns(jobs), fast = speeds_by_turns(faster);
    for (size_t j = 0; j < jobs.size(); ++j) {
      const double step = jobs[j].held_s / jobs[j].share,
                   faster_step = faster[j].held_s / faster[j].share;
      EXPECT_GE(fast[j] / faster_step, slow[j] / step * (1 - kRounding)) << "draw " << i;
    }
  }
}

TEST(Turns, HasNoJumpsInDepth) {
  Rng rng(7);
  for (int i = 0; i < 50; ++i) {
    TurnTaker job = random_taker(rng);
    const TurnTaker partner = random_taker(rng);
    job.processes = 1;
    for (const double depth : {1.0, 2.0, 3.0}) {
      job.depth = depth;
      const double at = speeds_by_turns(std::vector{job, partner})[0];
      job.depth = depth + 1e-6;
      EXPECT_NEAR(speeds_by_turns(std::vector{job, partner})[0], at, 1e-5);
    }
  }
}

TEST(Turns, MeetingIsNearTheChain) {
  Rng rng(8);
  double sum = 0, corrected = 0;
  size_t count = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<TurnTaker> jobs = {random_taker(rng), random_taker(rng), random_taker(rng)};
    for (TurnTaker& job : jobs) job.depth = job.processes = 1;
    const std::vector<double> chain = internal::speeds_by_chain(jobs),
                              meeting = internal::speeds_by_meeting(jobs),
                              speeds = speeds_by_turns(jobs);
    for (size_t j = 0; j < jobs.size(); ++j, ++count) {
      sum += std::abs(meeting[j] / chain[j] - 1);
      corrected += std::abs(speeds[j] / chain[j] - 1);
    }
  }
  // 2 % on measured jobs (research/sharing); these are far more unlike each other.
  EXPECT_LT(sum / static_cast<double>(count), 0.12);
  EXPECT_LT(corrected, 0.7 * sum);
}

TEST(Turns, AJobThatHardlyWantsTheGpuChangesNothing) {
  Rng rng(9);
  for (int i = 0; i < 100; ++i) {
    const std::vector<TurnTaker> two = {random_taker(rng), random_taker(rng)};
    std::vector<TurnTaker> three = two;
    three.push_back({.share = 1e-6, .turn_s = 1e-4, .held_s = 1e-3});
    const std::vector<double> before = speeds_by_turns(two), after = speeds_by_turns(three);
    for (size_t j = 0; j < two.size(); ++j) EXPECT_NEAR(after[j], before[j], 1e-3);
  }
}

TEST(Turns, SwitchesCostTheirTime) {
  // Measured on an H100 (data/measurements, slices.csv): two processes that always want the GPU
  // have it for 0.467 of the time each, three for 0.312.
  const TurnTaker busy{.share = 0.999, .turn_s = 2.09e-3, .held_s = 1, .switch_s = 0.152e-3};
  EXPECT_NEAR(speeds_by_turns(std::vector(2, busy))[0], 0.467, 0.002);
  EXPECT_NEAR(speeds_by_turns(std::vector(3, busy))[0], 0.312, 0.002);
}

TEST(Turns, SwitchesMakeNobodyFaster) {
  Rng rng(8);
  for (int i = 0; i < kDraws; ++i) {
    std::vector<TurnTaker> jobs = random_takers(rng, 4);
    const std::vector<double> without = speeds_by_turns(jobs);
    for (TurnTaker& job : jobs) job.switch_s = 1e-4;
    const std::vector<double> with = speeds_by_turns(jobs);
    for (size_t j = 0; j < jobs.size(); ++j)
      EXPECT_LE(with[j], without[j] * (1 + kRounding)) << i << ' ' << j;
    if (jobs.size() == 1) {
      EXPECT_EQ(with, without);
    }
  }
}

}  // namespace
}  // namespace tilecast
