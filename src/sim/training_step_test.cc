#include "sim/training_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <tuple>
#include <vector>

#include "base/rng.h"

namespace tilecast {
namespace {

constexpr double kForward = 1.0, kBackward = 2.0;

TrainingStep pipeline_of(PipelineSchedule schedule, int64_t stages, int64_t microbatches,
                         int64_t chunks = 1) {
  TrainingStep step;
  step.pipeline = {schedule, stages, chunks, microbatches};
  const auto c = static_cast<double>(chunks);
  for (int64_t s = 0; s < stages; ++s) {
    StageLoad& stage = step.stages.emplace_back();
    for (int64_t i = 0; i < chunks; ++i)
      stage.parts.push_back({.forward_s = kForward / c,
                             .backward_s = kBackward / c,
                             .last_backward_s = kBackward / c});
  }
  return step;
}

TEST(TrainingStepTest, BubbleOnIdealLinksIsThatOfTheLiterature) {
  for (const int64_t stages : {1, 2, 4, 8}) {
    for (const int64_t m : {1, 4, 8, 32}) {
      for (const PipelineSchedule schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
        const TrainingStep step = pipeline_of(schedule, stages, m);
        const StepTimes times = simulate_step(step, Folding::kSymmetric);
        const double ideal = static_cast<double>(m) * (kForward + kBackward);
        EXPECT_NEAR(times.seconds, ideal + static_cast<double>(stages - 1) * 3, 1e-9);
        const double bubble = static_cast<double>(stages - 1) / static_cast<double>(m + stages - 1);
        for (const StageTimes& stage : times.stages)
          EXPECT_NEAR(stage.bubble_s / times.seconds, bubble, 1e-9);
      }
    }
  }
}

TEST(TrainingStepTest, InterleavingDividesTheBubbleByTheParts) {
  for (const int64_t chunks : {2, 4}) {
    const StepTimes times = simulate_step(pipeline_of(PipelineSchedule::kInterleaved, 4, 8, chunks),
                                          Folding::kSymmetric);
    EXPECT_NEAR(times.seconds, 8 * 3 + 3 * 3.0 / static_cast<double>(chunks), 1e-9);
  }
}

/// Every collective fills a random part of its links.
void fill_links(Rng& rng, TrainingStep& step) {
  const auto fill = [&](Transfer& transfer, double seconds) {
    transfer = {.node_s = seconds * rng.uniform(), .network_s = seconds * rng.uniform()};
    transfer.both_s = std::min(transfer.node_s, transfer.network_s) * rng.uniform();
  };
  for (StageLoad& stage : step.stages) {
    for (PartLoad& part : stage.parts) {
      part.forward_communication_s = 0.4 * part.forward_s;
      part.backward_communication_s = 0.4 * part.backward_s;
      fill(part.forward_transfer, part.forward_communication_s);
      fill(part.backward_transfer, part.backward_communication_s);
      fill(part.send_forward_transfer, part.send_forward_s);
      fill(part.send_backward_transfer, part.send_backward_s);
      for (GradientBucket& bucket : part.buckets) fill(bucket.transfer, bucket.reduce_s);
      for (GatheredUnit& unit : part.units) {
        fill(unit.gather_transfer, unit.gather_s);
        fill(unit.reduce_transfer, unit.reduce_s);
      }
    }
    fill(stage.reduce_rest_transfer, stage.reduce_rest_s);
    fill(stage.gather_parameters_transfer, stage.gather_parameters_s);
  }
  fill(step.share_embeddings_transfer, step.share_embeddings_s);
}

/// A random step with everything that communicates.
TrainingStep random_step(Rng& rng, int64_t replicas, int64_t width) {
  const bool interleaved = rng.below(2) == 0;
  const auto stages = static_cast<int64_t>(interleaved ? 2 + rng.below(3) : 1 + rng.below(4));
  constexpr PipelineSchedule kOnePart[] = {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B,
                                           PipelineSchedule::kZeroBubble};
  constexpr PipelineSchedule kTwoParts[] = {PipelineSchedule::kInterleaved, PipelineSchedule::kZbV};
  const PipelineSchedule schedule = interleaved ? kTwoParts[rng.below(2)] : kOnePart[rng.below(3)];
  TrainingStep step = pipeline_of(schedule, stages, stages * static_cast<int64_t>(1 + rng.below(3)),
                                  interleaved ? 2 : 1);
  step.replicas = replicas;
  step.width = width;
  for (StageLoad& stage : step.stages) {
    for (PartLoad& part : stage.parts) {
      part.forward_s = rng.uniform();
      part.backward_s = 2 * rng.uniform();
      part.last_backward_s = part.backward_s * 1.1;
      part.weight_gradients_s = part.backward_s * rng.uniform();
      part.send_forward_s = 0.1 * rng.uniform();
      part.send_backward_s = 0.1 * rng.uniform();
      part.buckets = {{.ready_s = 0.3 * part.backward_s, .reduce_s = 0.2, .copy_out_s = 0.03},
                      {.ready_s = part.last_backward_s, .reduce_s = 0.1, .copy_out_s = 0.02}};
      if (rng.below(3) == 0 && !splits_backward(schedule))
        part.units = {{0.2, 0.3, 0.1, 0.1}, {0.3, 0.5, 0.05, 0.1}, {0.1, 0.1, 0.3, 0.2}};
    }
    stage.reduce_rest_s = 0.05;
    stage.optimizer_s = 0.2;
    stage.gather_parameters_s = 0.1;
  }
  if (stages > 1) step.share_embeddings_s = 0.07;
  return step;
}

TEST(TrainingStepTest, FoldingChangesNothingAtSixtyFourRanks) {
  Rng rng(5);
  for (int trial = 0; trial < 40; ++trial) {
    TrainingStep step = random_step(rng, 4, 4);
    const auto ranks = static_cast<size_t>(step.pipeline.stages * step.replicas * step.width);
    if (trial % 2 == 1) {  // some ranks are slower
      step.slow.assign(ranks, 1);
      for (int i = 0; i < 3; ++i) step.slow[rng.below(ranks)] = 1 + rng.uniform();
    }
    const StepTimes folded = simulate_step(step, Folding::kSymmetric);
    const StepTimes all = simulate_step(step, Folding::kNone);
    EXPECT_DOUBLE_EQ(folded.seconds, all.seconds);
    EXPECT_EQ(all.simulated_replicas, 4);
    for (size_t s = 0; s < folded.stages.size(); ++s) {
      EXPECT_NEAR(folded.stages[s].exposed_communication_s, all.stages[s].exposed_communication_s,
                  1e-9);
      EXPECT_NEAR(folded.stages[s].bubble_s, all.stages[s].bubble_s, 1e-9);
    }
  }
}

TEST(TrainingStepTest, ComputeExposedCommunicationAndBubbleSumUpToTheStep) {
  Rng rng(17);
  for (int trial = 0; trial < 50; ++trial) {
    const TrainingStep step = random_step(rng, 2, 1);
    const StepTimes times = simulate_step(step, Folding::kSymmetric);
    for (const StageTimes& s : times.stages) {
      EXPECT_NEAR(s.compute_s + s.exposed_communication_s + s.bubble_s, times.seconds, 1e-9);
      EXPECT_LE(s.exposed_communication_s, s.communication_s + 1e-9);
    }
  }
}

/// Buckets are copied out one after the other as soon as each is reduced: what is copied while the
/// last one is reduced costs nothing.
TEST(TrainingStepTest, ABucketIsCopiedOutWhenItIsReduced) {
  TrainingStep step = pipeline_of(PipelineSchedule::k1F1B, 1, 1);
  step.replicas = 2;
  step.stages[0].optimizer_s = 0.5;
  step.stages[0].parts[0].buckets = {{.ready_s = 1, .reduce_s = 0.5, .copy_out_s = 0.3},
                                     {.ready_s = 2, .reduce_s = 1, .copy_out_s = 0.2}};
  const StepTimes times = simulate_step(step, Folding::kSymmetric);
  EXPECT_NEAR(times.seconds, kForward + kBackward + 1 + 0.2 + 0.5, 1e-12);
  EXPECT_NEAR(times.stages[0].compute_s, kForward + kBackward + 0.3 + 0.2 + 0.5, 1e-12);
  EXPECT_NEAR(times.stages[0].exposed_communication_s, 0.7, 1e-12);
}

/// In a trace, a stream of a rank runs one operation at a time, all within the step, and the
/// compute streams are busy for the compute time and the collectives inside of passes.
TEST(TrainingStepTest, OperationsOfAStreamFollowEachOtherWithinTheStep) {
  Rng rng(41);
  for (int trial = 0; trial < 30; ++trial) {
    TrainingStep step = random_step(rng, 3, 1);
    if (trial % 3 > 0) fill_links(rng, step);
    if (trial % 2 > 0) {
      step.slow.assign(static_cast<size_t>(step.pipeline.stages * 3), 1);
      step.slow[rng.below(step.slow.size())] = 1.5;
    }
    const StepTimes times = simulate_step(step, Folding::kSymmetric, Events::kAll);
    std::map<std::tuple<int64_t, int64_t, StepStream>, std::vector<StepEvent>> streams;
    for (const StepEvent& event : times.events)
      streams[{event.stage, event.replica, event.stream}].push_back(event);
    double last_s = 0;
    for (auto& [key, events] : streams) {
      std::sort(events.begin(), events.end(),
                [](const auto& a, const auto& b) { return a.start_s < b.start_s; });
      double end_s = 0;
      for (const StepEvent& event : events) {
        EXPECT_GE(event.start_s, end_s - 1e-9);
        end_s = event.start_s + event.duration_s;
      }
      last_s = std::max(last_s, end_s);
    }
    EXPECT_NEAR(last_s, times.seconds, 1e-9);
    EXPECT_EQ(streams.size() % static_cast<size_t>(times.simulated_replicas), 0U);
  }
}

TEST(TrainingStepTest, FoldingChangesNothingWhereLinksAreShared) {
  Rng rng(29);
  for (int trial = 0; trial < 40; ++trial) {
    TrainingStep step = random_step(rng, 4, 4);
    fill_links(rng, step);
    const auto ranks = static_cast<size_t>(step.pipeline.stages * step.replicas * step.width);
    if (trial % 2 == 1) {
      step.slow.assign(ranks, 1);
      for (int i = 0; i < 3; ++i) step.slow[rng.below(ranks)] = 1 + rng.uniform();
    }
    const StepTimes folded = simulate_step(step, Folding::kSymmetric);
    const StepTimes all = simulate_step(step, Folding::kNone);
    EXPECT_NEAR(folded.seconds, all.seconds, 1e-9) << trial;
    for (size_t s = 0; s < folded.stages.size(); ++s)
      EXPECT_NEAR(folded.stages[s].exposed_communication_s, all.stages[s].exposed_communication_s,
                  1e-8)
          << trial;
  }
}

/// On one rank, messages take at least the time in which they fill each of its links.
TEST(TrainingStepTest, SharingLinksTakesNoLessThanTheirBytes) {
  Rng rng(31);
  int longer = 0;
  for (int trial = 0; trial < 100; ++trial) {
    TrainingStep step = random_step(rng, 2, 1);
    const double alone = simulate_step(step, Folding::kSymmetric).seconds;
    fill_links(rng, step);
    const StepTimes times = simulate_step(step, Folding::kSymmetric);
    EXPECT_GE(times.seconds, alone * (1 - 1e-12));
    longer += times.seconds > alone * (1 + 1e-6) ? 1 : 0;
    const auto m = static_cast<double>(step.pipeline.microbatches);
    for (const StageLoad& stage : step.stages) {
      double node_s = stage.reduce_rest_transfer.node_s + stage.gather_parameters_transfer.node_s;
      for (const PartLoad& part : stage.parts) {
        node_s += m * (part.forward_transfer.node_s + part.backward_transfer.node_s);
        for (const GradientBucket& bucket : part.buckets) node_s += bucket.transfer.node_s;
        for (const GatheredUnit& unit : part.units)
          node_s += m * (2 * unit.gather_transfer.node_s + unit.reduce_transfer.node_s);
      }
      EXPECT_GE(times.seconds, node_s * (1 - 1e-9)) << trial;
    }
    for (const StageTimes& s : times.stages)
      EXPECT_NEAR(s.compute_s + s.exposed_communication_s + s.bubble_s, times.seconds, 1e-9);
  }
  EXPECT_GT(longer, 50);
}

/// A reduction beside a pass with collectives over the same links: both take longer.
TEST(TrainingStepTest, ReductionsSlowTheCollectivesOfThePassBesideThem) {
  TrainingStep step = pipeline_of(PipelineSchedule::k1F1B, 1, 1);
  PartLoad& part = step.stages[0].parts[0];
  step.replicas = 2;
  part.backward_communication_s = 1;
  part.buckets = {{.ready_s = 0, .reduce_s = 0.5}};
  EXPECT_DOUBLE_EQ(simulate_step(step, Folding::kSymmetric).seconds, 3);
  part.backward_transfer.node_s = 1;
  part.buckets[0].transfer.network_s = 0.5;  // other links
  EXPECT_DOUBLE_EQ(simulate_step(step, Folding::kSymmetric).seconds, 3);
  part.buckets[0].transfer = {.node_s = 0.5};
  const StepTimes times = simulate_step(step, Folding::kSymmetric);
  EXPECT_GT(times.seconds, 3);
  EXPECT_LE(times.seconds, 3.5);                    // as if nothing overlapped
  EXPECT_NEAR(times.stages[0].compute_s, 2, 1e-9);  // only the collectives are longer
}

TEST(TrainingStepTest, TheEndsOfTheIntervalSurroundTheStep) {
  Rng rng(37);
  for (int trial = 0; trial < 50; ++trial) {
    TrainingStep step = random_step(rng, 2, 1);
    for (StageLoad& stage : step.stages) {
      for (PartLoad& part : stage.parts) {
        part.send_forward_transfer = {.less_s = 0.5 * part.send_forward_s, .more_s = 3};
        for (GradientBucket& bucket : part.buckets)
          bucket.transfer = {.less_s = 0.5 * bucket.reduce_s, .more_s = bucket.reduce_s};
      }
    }
    const double seconds = simulate_step(step, Folding::kSymmetric).seconds;
    const auto at = [&](int end) {
      return simulate_step(with_exchanges_at(step, end), Folding::kSymmetric).seconds;
    };
    EXPECT_LE(at(-1), seconds);
    EXPECT_GE(at(1), seconds);
    TrainingStep slower = step;
    for (StageLoad& stage : slower.stages) {
      for (PartLoad& part : stage.parts) scale_kernels(part, 1.2);
    }
    EXPECT_GT(simulate_step(slower, Folding::kSymmetric).seconds, seconds);
  }
}

TEST(TrainingStepTest, ASlowRankSlowsItsReplicaAndAllThatWaitForIt) {
  TrainingStep step = pipeline_of(PipelineSchedule::k1F1B, 2, 4);
  step.replicas = 8;
  for (StageLoad& stage : step.stages) stage.parts[0].buckets = {{kBackward, 0.1}};
  const double even = simulate_step(step, Folding::kSymmetric).seconds;
  step.slow.assign(16, 1);
  step.slow[3] = 1.5;
  const StepTimes uneven = simulate_step(step, Folding::kSymmetric);
  EXPECT_EQ(uneven.simulated_replicas, 2);
  EXPECT_GT(uneven.seconds, 1.2 * even);
}

/// 1.2 of 3 s are collectives inside the passes; a slow rank needs no longer for them.
TEST(TrainingStepTest, ASlowRanksCollectivesTakeAsLong) {
  TrainingStep step = pipeline_of(PipelineSchedule::k1F1B, 1, 1);
  PartLoad& part = step.stages[0].parts[0];
  part.forward_communication_s = 0.4;
  part.backward_communication_s = 0.8;
  step.replicas = 2;
  step.slow = {1, 2};
  EXPECT_DOUBLE_EQ(simulate_step(step, Folding::kSymmetric).seconds, 3 + 1.8);
  // A bucket that is ready after half of the backward pass.
  part.buckets = {{.ready_s = 1, .reduce_s = 10}};
  EXPECT_DOUBLE_EQ(simulate_step(step, Folding::kSymmetric).seconds, 1.6 + 1.6 + 10);
}

/// Every replica is slowed differently, and reductions share links with the passes.
TEST(TrainingStepTest, ManyDifferentReplicasAreSimulatedInNLogN) {
  const auto seconds_of = [](int64_t replicas) {
    TrainingStep step = pipeline_of(PipelineSchedule::k1F1B, 1, 4);
    PartLoad& part = step.stages[0].parts[0];
    part.forward_communication_s = part.backward_communication_s = 0.5;
    part.forward_transfer.node_s = part.backward_transfer.node_s = 0.5;
    for (int i = 0; i < 20; ++i) part.buckets.push_back({0.1 * i, 0.1, {.node_s = 0.1}});
    step.replicas = replicas;
    for (int64_t r = 0; r < replicas; ++r)
      step.slow.push_back(1 + static_cast<double>(r) / static_cast<double>(replicas));
    const std::clock_t start = std::clock();
    EXPECT_EQ(simulate_step(step, Folding::kSymmetric).simulated_replicas, replicas);
    return static_cast<double>(std::clock() - start);
  };
  // Processor time, the least of several runs, since other programs run at the same time.
  const auto least = [&](int64_t replicas) {
    double seconds = HUGE_VAL;
    for (int i = 0; i < 3; ++i) seconds = std::min(seconds, seconds_of(replicas));
    return seconds;
  };
  // Eight times the replicas: n log n is 11 times, n squared 64 times.
  EXPECT_LT(least(2048), 32 * least(256));
}

TEST(TrainingStepTest, OneBucketOnAnInfiniteLinkIsOneGpu) {
  TrainingStep step = pipeline_of(PipelineSchedule::k1F1B, 1, 1);
  const double alone = simulate_step(step, Folding::kSymmetric).seconds;
  step.replicas = 64;
  step.stages[0].parts[0].buckets = {{kBackward, 0}};
  EXPECT_EQ(simulate_step(step, Folding::kSymmetric).seconds, alone);
}

}  // namespace
}  // namespace tilecast
