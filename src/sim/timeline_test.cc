#include "sim/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace tilecast {
namespace {

/// Blocks of given lengths and repetitions; every launch has a kernel of its own.
Program program_of(const std::vector<std::pair<size_t, int64_t>>& blocks) {
  static const Node node;
  Program program;
  for (const auto& [launches, repeat] : blocks) {
    program.blocks.push_back({.first_launch = program.launches.size(),
                              .launch_count = launches,
                              .repeat = repeat,
                              .segment = program.blocks.size()});
    for (size_t i = 0; i < launches; ++i) {
      program.launches.push_back(
          {.node = &node, .kernel = program.kernels.size(), .block = program.blocks.size() - 1});
      program.kernels.emplace_back();
    }
  }
  return program;
}

TEST(TimelineTest, EventsStartWhereAStepByStepSimulationStartsThem) {
  constexpr double kLaunch = 5e-6;
  Rng rng(7);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<std::pair<size_t, int64_t>> blocks;
    for (int b = 0; b < 4; ++b)
      blocks.emplace_back(1 + rng.below(5), static_cast<int64_t>(1 + rng.below(6)));
    const Program program = program_of(blocks);
    std::vector<double> seconds(program.kernels.size());
    for (double& s : seconds) s = 12e-6 * rng.uniform();
    const Timeline timeline = simulate(program, seconds, kLaunch);
    ASSERT_EQ(timeline.events.size(), program.launches.size());
    double host = -kLaunch, gpu = 0;
    for (size_t b = 0; b < program.blocks.size(); ++b) {
      const Block& block = program.blocks[b];
      for (int64_t r = 0; r < block.repeat; ++r) {
        for (size_t i = block.first_launch; i < block.first_launch + block.launch_count; ++i) {
          host += kLaunch;
          const double start = std::max(gpu, host);
          if (r == 0) {
            EXPECT_NEAR(timeline.events[i].start_s, start, 1e-12);
            EXPECT_EQ(timeline.events[i].count, block.repeat);
          }
          gpu = start + seconds[i];
        }
      }
      EXPECT_NEAR(timeline.spans[b].end_s, gpu, 1e-12);
    }
    EXPECT_NEAR(timeline.end_s(), gpu, 1e-12);
  }
}

TEST(TimelineTest, PhasesShareTheWholeTime) {
  Program program = program_of({{2, 3}, {1, 1}, {2, 3}});
  program.blocks[1].phase = Phase::kBackward;
  program.blocks[2].phase = Phase::kBackward;
  const std::vector<double> seconds(5, 10e-6);
  const Timeline timeline = simulate(program, seconds, 0);
  EXPECT_NEAR(timeline.phase_s(Phase::kForward), 60e-6, 1e-15);
  EXPECT_NEAR(timeline.phase_s(Phase::kBackward), 70e-6, 1e-15);
  EXPECT_NEAR(timeline.end_s(), 130e-6, 1e-15);
}

TEST(TimelineTest, AnEmptyProgramTakesNoTime) {
  const Timeline timeline = simulate({}, {}, 5e-6);
  EXPECT_EQ(timeline.end_s(), 0);
  EXPECT_EQ(timeline.phase_s(Phase::kForward), 0);
}

}  // namespace
}  // namespace tilecast
