// When a server sees a request, and when it holds prompts back.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/serving.h"
#include "test_support.h"

namespace tilecast {
namespace {

ServerLimits waiting_limits(const char* software) {
  return {.software = software_of(software), .cache_blocks = 1 << 16};
}

std::string work_of(const ServingBatch& batch) {
  std::string text = std::to_string(batch.decoding);
  for (const PromptChunk& p : batch.prompts) text += "+" + std::to_string(p.tokens);
  return text;
}

/// Sequences that decode and prompts of each step, which takes a second: "1+8".
std::vector<std::string> work_of_steps(const ServingLoad& load, ServerLimits limits) {
  limits.longest_jump = 1;
  std::vector<std::string> steps;
  (void)simulate_serving(load, limits, [&](const ServingBatch& batch) {
    steps.push_back(work_of(batch));
    return 1.0;
  });
  return steps;
}

using Words = std::vector<std::string>;

// The second request comes while the second step runs.
const ServingLoad kTwoRequests{.requests = {{0, 4, 6}, {1.5, 8, 2}}};

TEST(AsyncScheduling, ARequestIsInTheSecondStepAfterTheOneInWhichItComes) {
  for (const char* software : {"vllm", "trtllm"}) {
    ServerLimits limits = waiting_limits(software);
    EXPECT_EQ(work_of_steps(kTwoRequests, limits), (Words{"0+4", "1", "1+8", "2", "1", "1"}));
    limits.schedules_ahead = true;
    EXPECT_EQ(work_of_steps(kTwoRequests, limits), (Words{"0+4", "1", "1", "1+8", "2", "1"}));
  }
}

TEST(AsyncScheduling, AnIdleServerStartsAtOnce) {
  ServerLimits limits = waiting_limits("vllm");
  limits.schedules_ahead = true;
  // The second comes in the last step of the first: no further step is formed.
  const ServingLoad load{.requests = {{0, 4, 2}, {1.5, 8, 2}, {9, 8, 1}}};
  EXPECT_EQ(work_of_steps(load, limits), (Words{"0+4", "1", "0+8", "1", "0+8"}));
}

TEST(AsyncScheduling, StepsThatAreTakenAtOnceGiveTheSameTimes) {
  for (const char* software : {"vllm", "sglang", "trtllm"}) {
    const ServingLoad load{.requests = draw_requests({.requests = 500,
                                                      .rate = 0.6,
                                                      .prompt_low = 1,
                                                      .prompt_high = 40,
                                                      .output_low = 1,
                                                      .output_high = 60})};
    ServerLimits limits = waiting_limits(software);
    limits.schedules_ahead = true;
    limits.max_num_seqs = 8;
    const auto step_s = [](const ServingBatch& batch) {
      return batch.prompts.empty() ? 0.25 : 0.5;
    };
    const ServingResult jumps = simulate_serving(load, limits, step_s);
    limits.longest_jump = 1;
    const ServingResult steps = simulate_serving(load, limits, step_s);
    ASSERT_EQ(jumps.requests.size(), steps.requests.size());
    for (size_t i = 0; i < jumps.requests.size(); ++i) {
      EXPECT_NEAR(jumps.requests[i].first_s, steps.requests[i].first_s, 1e-9) << software << i;
      EXPECT_NEAR(jumps.requests[i].last_s, steps.requests[i].last_s, 1e-9) << software << i;
    }
  }
}

TEST(Polling, RequestsAreSeenAfterEveryFewDecodeSteps) {
  ServerLimits limits = waiting_limits("sglang");
  EXPECT_EQ(work_of_steps(kTwoRequests, limits), (Words{"0+4", "1", "0+8", "2", "1", "1", "1"}));
  limits.poll_steps = 4;
  // It looks after the prompt, and after four decode steps.
  EXPECT_EQ(work_of_steps(kTwoRequests, limits), (Words{"0+4", "1", "1", "1", "1", "0+8", "2"}));
}

TEST(BatchWaiting, PromptsWaitForOthersBesideSequencesThatDecode) {
  ServerLimits limits = waiting_limits("trtllm");
  limits.max_num_batched_tokens = 32;
  limits.batch_wait_steps = 2;
  limits.batch_wait_tokens = 16;
  EXPECT_EQ(work_of_steps(kTwoRequests, limits), (Words{"0+4", "1", "1", "1", "1+8", "2"}));
  // A second prompt fills the step.
  ServingLoad filled = kTwoRequests;
  filled.requests.push_back({2.5, 8, 1});
  EXPECT_EQ(work_of_steps(filled, limits), (Words{"0+4", "1", "1", "1+8+8", "2", "1"}));
}

TEST(BatchWaiting, NothingWaitsWhereNothingDecodes) {
  ServerLimits limits = waiting_limits("trtllm");
  limits.batch_wait_steps = 20;
  limits.batch_wait_tokens = 4096;
  const ServingLoad load{.requests = {{0, 4, 1}, {5, 8, 1}}};
  EXPECT_EQ(work_of_steps(load, limits), (Words{"0+4", "0+8"}));
}

/// The prompts of each step on two data-parallel ranks.
std::vector<std::string> prompts_of_ranks(const ServingLoad& load, ServerLimits limits) {
  limits.longest_jump = 1;
  limits.dp = 2;
  std::vector<std::string> steps;
  Fleet fleet;
  fleet.pool.limits = limits;
  fleet.pool.step_s = [&](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    std::string text;
    for (const ServingBatch& batch : ranks) text += (text.empty() ? "" : "|") + work_of(batch);
    steps.push_back(text);
    stage_s.push_back(1.0);
  };
  (void)simulate_fleet(load, fleet);
  return steps;
}

TEST(AttentionDpBalance, PromptsWaitUntilEachRankHasOne) {
  ServerLimits limits = waiting_limits("trtllm");
  const ServingLoad load{.requests = {{0, 4, 8}, {0, 4, 8}, {1.5, 8, 1}, {3.5, 8, 1}}};
  EXPECT_EQ(prompts_of_ranks(load, limits),
            (Words{"0+4|0+4", "1|1", "1+8|1", "1|1", "1+8|1", "1|1", "1|1", "1|1"}));
  limits.rank_wait_steps = 50;
  EXPECT_EQ(prompts_of_ranks(load, limits),
            (Words{"0+4|0+4", "1|1", "1|1", "1|1", "1+8|1+8", "1|1", "1|1", "1|1"}));
  limits.rank_wait_steps = 2;  // the third waits for one step
  EXPECT_EQ(prompts_of_ranks(load, limits)[3], "1+8|1");
}

}  // namespace
}  // namespace tilecast
