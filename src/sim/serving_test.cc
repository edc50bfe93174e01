#include "sim/serving.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// 10 ms a step and 0.1 ms for each token of a prompt.
double simple_step(const ServingBatch& b) {
  double tokens = 0;
  for (const PromptChunk& p : b.prompts) tokens += static_cast<double>(p.tokens);
  return 10e-3 + 1e-4 * tokens;
}

ServerLimits limits_of(Software software) {
  return {.software = software, .cache_blocks = 1 << 16, .longest_jump = 1};
}

ServingLoad clients(int64_t count, int64_t requests, int64_t prompt, int64_t output) {
  return {.requests = std::vector<RequestSpec>(static_cast<size_t>(requests), {0, prompt, output}),
          .concurrency = count};
}

/// The work of each step, as text: "2@4.5 + 7:0" is two sequences that decode at a mean context of
/// 4.5 tokens, and 7 tokens of a prompt that has none in the cache. A step takes a second.
std::vector<std::string> steps_of(const ServingLoad& load, const ServerLimits& limits,
                                  ServingResult* result = nullptr) {
  std::vector<std::string> steps;
  const ServingResult r = simulate_serving(load, limits, [&](const ServingBatch& b) {
    std::string text;
    if (b.decoding > 0) {
      const std::string context = std::to_string(b.decode_context);
      text = std::to_string(b.decoding) + "@" + context.substr(0, context.find('.') + 2);
    }
    for (const PromptChunk& p : b.prompts)
      text += (text.empty() ? "" : " + ") + std::to_string(p.tokens) + ":" + std::to_string(p.past);
    steps.push_back(text);
    return 1.0;
  });
  if (result != nullptr) *result = r;
  return steps;
}

using Steps = std::vector<std::string>;

TEST(VllmScheduler, FillsTheTokenBudgetWithPromptsTheLastOneInPart) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.max_num_batched_tokens = 10;
  ServingResult result;
  // 4 + 4 + 2 of the third prompt; its other half beside two decodes; all decode; the third alone.
  EXPECT_EQ(steps_of(clients(3, 3, 4, 3), limits, &result),
            (Steps{"4:0 + 4:0 + 2:0", "2@4.0 + 2:2", "3@4.6", "1@5.0"}));
  EXPECT_EQ(result.requests[0].first_s, 1);
  EXPECT_EQ(result.requests[2].first_s, 2);
  EXPECT_EQ(result.requests[0].last_s, 3);
  EXPECT_EQ(result.requests[2].last_s, 4);
}

TEST(VllmScheduler, CutsALongPromptIntoChunks) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.max_num_batched_tokens = 10;
  EXPECT_EQ(steps_of(clients(1, 1, 25, 3), limits),
            (Steps{"10:0", "10:10", "5:20", "1@25.0", "1@26.0"}));
}

TEST(VllmScheduler, MixesDecodesWithAPromptThatCameLater) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.max_num_batched_tokens = 8;
  const ServingLoad load{.requests = {{0, 4, 5}, {1.5, 12, 2}}};
  EXPECT_EQ(steps_of(load, limits), (Steps{"4:0", "1@4.0", "1@5.0 + 7:0", "1@6.0 + 5:7", "2@9.5"}));
}

TEST(VllmScheduler, PreemptsTheYoungestAndComputesItAgain) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.block_tokens = 4;
  limits.cache_blocks = 4;
  limits.keeps_preempted = false;
  ServingResult result;
  // Prompts of 6 take two blocks each: the cache is full. At 8 tokens the first needs a third
  // block: the second loses both, waits for the first to end, and computes its 6 + 3 tokens again.
  EXPECT_EQ(
      steps_of(clients(2, 2, 6, 6), limits, &result),
      (Steps{"6:0 + 6:0", "2@6.0", "2@7.0", "1@8.0", "1@9.0", "1@10.0", "9:0", "1@9.0", "1@10.0"}));
  EXPECT_EQ(result.preemptions, 1);
  EXPECT_EQ(result.requests[1].first_s, 1);
  EXPECT_EQ(result.requests[1].last_s, 9);
}

TEST(VllmScheduler, FindsBlocksOfAPreemptedRequestThatNobodyTook) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.block_tokens = 4;
  limits.cache_blocks = 4;
  // As above, but the first takes one of the two blocks of the second, and that the later one:
  // 4 of its 9 tokens are there when it is admitted again.
  ServingResult result;
  EXPECT_EQ(
      steps_of(clients(2, 2, 6, 6), limits, &result),
      (Steps{"6:0 + 6:0", "2@6.0", "2@7.0", "1@8.0", "1@9.0", "1@10.0", "5:4", "1@9.0", "1@10.0"}));
  EXPECT_EQ(result.preemptions, 1);
  // The second is preempted with 7 full blocks and a part of the next. The first takes the part.
  limits.cache_blocks = 17;
  const ServingLoad load{.requests = {{0, 36, 3}, {0, 29, 2}}};
  EXPECT_EQ(steps_of(load, limits), (Steps{"36:0 + 29:0", "1@36.0", "1@37.0", "2:28"}));
}

TEST(VllmScheduler, APromptWaitsUntilTheCacheHoldsAllOfIt) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.block_tokens = 4;
  limits.cache_blocks = 8;
  limits.max_num_batched_tokens = 8;
  ServingResult result;
  // Its first chunk would fit beside the other's 2 blocks, but not its 7 blocks.
  const ServingLoad load{.requests = {{0, 8, 3}, {0.5, 28, 2}}};
  EXPECT_EQ(steps_of(load, limits, &result),
            (Steps{"8:0", "1@8.0", "1@9.0", "8:0", "8:8", "8:16", "4:24", "1@28.0"}));
  EXPECT_EQ(result.preemptions, 0);
}

TEST(VllmScheduler, NoMoreSequencesRunThanMaxNumSeqs) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.max_num_seqs = 2;
  EXPECT_EQ(steps_of(clients(3, 3, 4, 2), limits), (Steps{"4:0 + 4:0", "2@4.0", "4:0", "1@4.0"}));
}

TEST(VllmScheduler, APrefixInTheCacheIsNotComputed) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.prefix_hit_rate = 0.5;
  // Half of 80 tokens is two and a half blocks of 16: two are hit.
  EXPECT_EQ(steps_of(clients(2, 2, 80, 2), limits), (Steps{"48:32 + 48:32", "2@80.0"}));
  limits.prefix_hit_rate = 1;  // the last token is computed at least, and with it its block
  EXPECT_EQ(steps_of(clients(1, 1, 80, 1), limits), (Steps{"16:64"}));
  // The prefix is held once: 4 blocks beside one of each.
  limits.cache_blocks = 6;
  EXPECT_EQ(steps_of(clients(2, 2, 80, 1), limits), (Steps{"16:64 + 16:64"}));
}

TEST(SglangScheduler, PrefillsFirstAndNeverMixes) {
  const ServerLimits limits = limits_of(software_of("sglang"));
  const ServingLoad load{.requests = {{0, 4, 4}, {0, 4, 4}, {1.5, 6, 2}}};
  EXPECT_EQ(steps_of(load, limits), (Steps{"4:0 + 4:0", "2@4.0", "6:0", "3@5.3", "2@6.0"}));
}

TEST(SglangScheduler, CutsAPromptAndGoesOnWithItBeforeAnyDecode) {
  ServerLimits limits = limits_of(software_of("sglang"));
  limits.max_num_batched_tokens = 10;
  EXPECT_EQ(steps_of(clients(2, 2, 8, 2), limits), (Steps{"8:0 + 2:0", "6:2", "2@8.0"}));
}

TEST(SglangScheduler, RetractsWhereItExpectedTooLittle) {
  ServerLimits limits = limits_of(software_of("sglang"));
  limits.block_tokens = 1;
  limits.cache_blocks = 140;
  ServingResult result;
  // Three need 3 x 54 tokens at their ends. Expecting that the first two write 0.7 of their outputs
  // lets the third in: 140 - 2 x (10 + 0.7 x 44) > 55. One has to go when the cache is full.
  steps_of(clients(3, 3, 10, 45), limits, &result);
  EXPECT_EQ(result.preemptions, 1);
  for (const RequestTimes& r : result.requests) EXPECT_GT(r.last_s, 0);
}

TEST(TensorRtLlmScheduler, StartsOnlyWhatFitsToItsEnd) {
  ServerLimits limits = limits_of(software_of("trtllm"));
  limits.block_tokens = 4;
  limits.cache_blocks = 8;
  ServingResult result;
  // Three blocks each at full length: the third waits, though two blocks are free.
  EXPECT_EQ(steps_of(clients(3, 3, 6, 4), limits, &result),
            (Steps{"6:0 + 6:0", "2@6.0", "2@7.0", "2@8.0", "6:0", "1@6.0", "1@7.0", "1@8.0"}));
  EXPECT_EQ(result.preemptions, 0);
}

TEST(TensorRtLlmScheduler, DoesNotCutPrompts) {
  ServerLimits limits = limits_of(software_of("trtllm"));
  limits.max_num_batched_tokens = 10;
  EXPECT_EQ(steps_of(clients(2, 2, 6, 2), limits), (Steps{"6:0", "1@6.0 + 6:0", "1@6.0"}));
  EXPECT_ERROR(steps_of(clients(1, 1, 11, 2), limits), kInput, "a prompt of 11 tokens is longer");
}

TEST(Serving, ARequestThatNeverFitsIsRefused) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.cache_blocks = 2;
  EXPECT_ERROR(steps_of(clients(1, 1, 32, 2), limits), kInput, "needs 3 blocks of the cache");
  EXPECT_EQ(steps_of(clients(1, 1, 31, 2), limits).size(), 2u);
}

TEST(Serving, OneClientWaitsForItsOwnRequestOnly) {
  const ServingResult r =
      simulate_serving(clients(1, 90, 100, 11), limits_of(software_of("vllm")), simple_step);
  EXPECT_NEAR(r.all.ttft.p99_s, 20e-3, 1e-9);
  EXPECT_NEAR(r.all.tpot.mean_s, 10e-3, 1e-9);
  EXPECT_NEAR(r.all.e2e.mean_s, 120e-3, 1e-9);
  EXPECT_NEAR(r.all.requests_per_s, 1 / 0.12, 1e-6);
  EXPECT_NEAR(r.all.output_tokens_per_s, 11 / 0.12, 1e-6);
  EXPECT_NEAR(r.all.total_tokens_per_s, 111 / 0.12, 1e-6);
  EXPECT_NEAR(r.busy_share, 1, 1e-9);
  EXPECT_EQ(r.most_in_flight, 1);
  ASSERT_TRUE(r.steady);
  EXPECT_EQ(r.steady->requests, 88);
  EXPECT_NEAR(r.steady->requests_per_s, 1 / 0.12, 1e-6);
}

TEST(Serving, TheServersOverheadComesBeforeTheScheduler) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.overhead_s = 0.5;
  const ServingResult r = simulate_serving(clients(1, 10, 100, 11), limits, simple_step);
  EXPECT_NEAR(r.all.ttft.mean_s, 0.52, 1e-9);
  EXPECT_NEAR(r.all.tpot.mean_s, 10e-3, 1e-9);
}

TEST(Serving, ClientsThatStartTogetherAreTakenInOneAfterTheOther) {
  ServerLimits limits = limits_of(software_of("vllm"));
  limits.turn_s = 0.5;
  const auto ttft = [&](const ServingLoad& load) {
    return simulate_serving(load, limits, simple_step).all.ttft;
  };
  EXPECT_NEAR(ttft(clients(1, 10, 100, 1)).mean_s, 0.52, 1e-9);
  // Each prompt is computed before the next one is there.
  EXPECT_NEAR(ttft(clients(4, 4, 100, 1)).mean_s, (0.5 + 1 + 1.5 + 2) / 4 + 0.02, 1e-9);
}

TEST(Serving, SeveralServersTakeInMoreRequestsButNoneFaster) {
  Fleet fleet;
  fleet.pool.limits = limits_of(software_of("vllm"));
  fleet.pool.limits.turn_s = 0.5;
  fleet.pool.step_s = [](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    stage_s.push_back(simple_step(ranks.front()));
  };
  const auto mean_s = [&](int64_t sent_together) {
    return simulate_fleet(clients(sent_together, sent_together, 100, 1), fleet).all.ttft.mean_s;
  };
  const double one = mean_s(1);
  EXPECT_NEAR(mean_s(4), one + (0.5 + 1 + 1.5) / 4, 1e-9);
  fleet.pool.servers = 4;
  EXPECT_NEAR(mean_s(1), one, 1e-9);
  EXPECT_NEAR(mean_s(4), one + (0.125 + 0.25 + 0.375) / 4, 1e-9);
}

TEST(Serving, TheSteadyPartLeavesOutAsManyAsAreInFlightAtBothEnds) {
  const ServerLimits limits = limits_of(software_of("vllm"));
  const ServingResult r = simulate_serving(clients(4, 40, 100, 11), limits, simple_step);
  EXPECT_EQ(r.most_in_flight, 4);
  ASSERT_TRUE(r.steady);
  EXPECT_EQ(r.steady->requests, 32);
  EXPECT_FALSE(simulate_serving(clients(4, 8, 100, 11), limits, simple_step).steady);
}

TEST(Serving, GoodputCountsWhatMeetsBothLimits) {
  const ServerLimits limits = limits_of(software_of("vllm"));
  const ServingLoad load{.requests = {{0, 100, 11}, {0, 1000, 11}, {10, 100, 11}}};
  const ServingResult r = simulate_serving(load, limits, simple_step);
  const double seconds = 10 + 0.12;
  EXPECT_NEAR(goodput(r, std::nullopt, std::nullopt), 3 / seconds, 1e-9);
  EXPECT_NEAR(goodput(r, 0.05, std::nullopt), 1 / seconds, 1e-9);  // the two wait for 1100 tokens
  EXPECT_NEAR(goodput(r, 0.2, 0.0101), 3 / seconds, 1e-9);
  EXPECT_NEAR(goodput(r, 0.2, 0.0099), 0, 1e-9);
}

TEST(Serving, SaysWhetherItKeepsUp) {
  const ServerLimits limits = limits_of(software_of("vllm"));
  const auto at_rate = [&](double rate) {
    const ServingLoad load{.requests = draw_requests({.requests = 600,
                                                      .rate = rate,
                                                      .prompt_low = 100,
                                                      .prompt_high = 100,
                                                      .output_low = 11,
                                                      .output_high = 11})};
    return simulate_serving(load, limits, simple_step);
  };
  EXPECT_TRUE(at_rate(5).keeps_up);
  EXPECT_NEAR(at_rate(5).steady->requests_per_s, 5, 0.5);
  const ServingResult flooded = at_rate(500);
  EXPECT_FALSE(flooded.keeps_up);
  EXPECT_LT(flooded.all.requests_per_s, 100);
  // A little too slow: chance might explain it, but the queue grows.
  const double most = flooded.all.requests_per_s;
  EXPECT_TRUE(at_rate(5).queue_is_short && at_rate(0.8 * most).queue_is_short);
  EXPECT_TRUE(at_rate(1.04 * most).keeps_up);
  EXPECT_FALSE(at_rate(1.04 * most).queue_is_short);
  EXPECT_FALSE(flooded.queue_is_short);
}

TEST(Serving, DrawnLoadsAreSeededAndKeepToTheirRanges) {
  const RandomLoad wish{.requests = 2000,
                        .rate = 4,
                        .prompt_low = 800,
                        .prompt_high = 1000,
                        .output_low = 100,
                        .output_high = 200};
  const std::vector<RequestSpec> load = draw_requests(wish);
  double prompts = 0;
  for (size_t i = 0; i < load.size(); ++i) {
    EXPECT_TRUE(load[i].prompt >= 800 && load[i].prompt <= 1000) << load[i].prompt;
    EXPECT_TRUE(load[i].output >= 100 && load[i].output <= 200) << load[i].output;
    EXPECT_GE(load[i].arrival_s, i > 0 ? load[i - 1].arrival_s : 0);
    prompts += static_cast<double>(load[i].prompt);
  }
  EXPECT_NEAR(prompts / 2000, 900, 5);  // 3 standard errors: 58 / sqrt(2000) x 3
  EXPECT_NEAR(load.back().arrival_s, 500, 1e-9);
  EXPECT_EQ(draw_requests(wish)[7].arrival_s, load[7].arrival_s);
}

/// Step times that grow with all that a step computes.
double rich_step(const ServingBatch& b) {
  double tokens = 0, pairs = 0;
  for (const PromptChunk& p : b.prompts) {
    tokens += static_cast<double>(p.tokens);
    pairs += static_cast<double>(p.tokens * (p.past + p.tokens));
  }
  return 5e-3 + 1e-4 * tokens + 1e-7 * pairs +
         static_cast<double>(b.decoding) * (1e-5 + 1e-8 * b.decode_context);
}

TEST(Serving, StepsTakenAtOnceGiveTheSameTimes) {
  for (const Software software :
       {software_of("vllm"), software_of("sglang"), software_of("trtllm")}) {
    ServerLimits limits = limits_of(software);
    limits.cache_blocks = 900;
    const ServingLoad load{.requests = draw_requests({.requests = 300,
                                                      .rate = 8,
                                                      .prompt_low = 50,
                                                      .prompt_high = 900,
                                                      .output_low = 1,
                                                      .output_high = 300})};
    const ServingResult each = simulate_serving(load, limits, rich_step);
    limits.longest_jump = 64;
    const ServingResult jumps = simulate_serving(load, limits, rich_step);
    EXPECT_NEAR(jumps.all.ttft.mean_s / each.all.ttft.mean_s, 1, 5e-3);
    EXPECT_NEAR(jumps.all.tpot.mean_s / each.all.tpot.mean_s, 1, 5e-3);
    EXPECT_NEAR(jumps.all.e2e.p99_s / each.all.e2e.p99_s, 1, 5e-3);
    EXPECT_NEAR(jumps.mean_batch / each.mean_batch, 1, 5e-3);
  }
}

TEST(Serving, AnyLoadKeepsTheLimitsAndEnds) {
  Rng rng(7);
  for (int trial = 0; trial < 120; ++trial) {
    const std::array tried = {software_of("vllm"), software_of("sglang"), software_of("trtllm")};
    ServerLimits limits{.software = tried[static_cast<size_t>(trial) % tried.size()],
                        .max_num_seqs = 1 + static_cast<int64_t>(rng.below(12)),
                        .max_num_batched_tokens = 40 + static_cast<int64_t>(rng.below(100)),
                        .block_tokens = int64_t{1} << rng.below(5),
                        .prefix_hit_rate = trial % 4 == 0 ? 0.5 : 0,
                        .longest_jump = trial % 2 == 0 ? 1 : 64};
    ServingLoad load{.requests = draw_requests({.requests = 40,
                                                .rate = trial % 5 == 0 ? 0.0 : 3.0,
                                                .prompt_low = 1,
                                                .prompt_high = 40,
                                                .output_low = 1,
                                                .output_high = 60,
                                                .seed = rng.next()})};
    if (trial % 5 == 0) load.concurrency = 1 + static_cast<int64_t>(rng.below(40));
    limits.cache_blocks = blocks_needed(load, limits) + static_cast<int64_t>(rng.below(20));
    const ServingResult r = simulate_serving(load, limits, [&](const ServingBatch& b) {
      int64_t tokens = b.decoding;
      for (const PromptChunk& p : b.prompts) tokens += p.tokens;
      EXPECT_GT(tokens, 0);
      if (limits.software == software_of("sglang")) {
        EXPECT_TRUE(b.decoding == 0 || b.prompts.empty());
      } else {
        EXPECT_LE(tokens, limits.max_num_batched_tokens);
      }
      EXPECT_LE(b.decoding + static_cast<int64_t>(b.prompts.size()), limits.max_num_seqs + 1);
      return 0.05;
    });
    for (const RequestTimes& q : r.requests) {
      EXPECT_GT(q.first_s, q.sent_s);
      // A step writes at most one token of a sequence.
      EXPECT_GE(q.last_s - q.first_s, 0.05 * static_cast<double>(q.output - 1) - 1e-9);
    }
    EXPECT_LE(r.cache_use, 1);
    EXPECT_TRUE(r.preemptions == 0 || limits.software != software_of("trtllm"));
  }
}

}  // namespace
}  // namespace tilecast
