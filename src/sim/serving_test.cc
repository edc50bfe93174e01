#include "sim/serving.h"

#include <gtest/gtest.h>

namespace tilecast {
namespace {

/// 10 ms a step and 0.1 ms a prefilled token.
double simple_step(const ServingBatch& b) {
  return 10e-3 + 1e-4 * static_cast<double>(b.prefill_tokens);
}

ServingLoad small_load() {
  return {.prompt = 100,
          .output = 11,
          .concurrency = 1,
          .most_sequences = 8,
          .cache_tokens = 1 << 20,
          .tokens_per_step = 1000,
          .requests = 90};
}

TEST(Serving, OneClientWaitsForItsOwnRequestOnly) {
  const ServingResult r = simulate_serving(small_load(), simple_step);
  EXPECT_NEAR(r.first_token.front(), 20e-3, 1e-9);
  EXPECT_NEAR(r.first_token.back(), 20e-3, 1e-9);
  EXPECT_NEAR(r.per_token.back(), 10e-3, 1e-9);
  EXPECT_NEAR(r.requests_per_s, 1 / 0.12, 1e-6);
  EXPECT_TRUE(r.keeps_up);
}

TEST(Serving, MoreClientsShareSteps) {
  ServingLoad load = small_load();
  load.concurrency = 4;
  const ServingResult r = simulate_serving(load, simple_step);
  EXPECT_GT(r.requests_per_s, 3 / 0.16);
  EXPECT_GT(r.mean_batch, 2.5);
}

TEST(Serving, APromptIsPrefilledInChunks) {
  ServingLoad load = small_load();
  load.tokens_per_step = 30;
  int64_t longest = 0;
  const ServingResult r = simulate_serving(load, [&](const ServingBatch& b) {
    longest = std::max(longest, b.prefill_tokens);
    return simple_step(b);
  });
  EXPECT_EQ(longest, 30);
  EXPECT_NEAR(r.first_token.front(), 4 * 10e-3 + 100 * 1e-4, 1e-9);
}

TEST(Serving, NoMoreSequencesRunThanCachesFit) {
  ServingLoad load = small_load();
  load.concurrency = 20;
  load.cache_tokens = 3 * 111;
  int64_t most = 0;
  simulate_serving(load, [&](const ServingBatch& b) {
    most = std::max(most, b.decoding);
    return simple_step(b);
  });
  EXPECT_EQ(most, 3);
}

TEST(Serving, SaysWhetherItKeepsUp) {
  ServingLoad load = small_load();
  load.requests = 600;
  load.requests_per_s = 5;
  EXPECT_TRUE(simulate_serving(load, simple_step).keeps_up);
  load.requests_per_s = 500;
  const ServingResult r = simulate_serving(load, simple_step);
  EXPECT_FALSE(r.keeps_up);
  EXPECT_LT(r.requests_per_s, 100);
}

TEST(Serving, TheSameSeedGivesTheSameTimes) {
  ServingLoad load = small_load();
  load.requests_per_s = 20;
  EXPECT_EQ(simulate_serving(load, simple_step).first_token,
            simulate_serving(load, simple_step).first_token);
}

}  // namespace
}  // namespace tilecast
