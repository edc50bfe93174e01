// Conversations with a rate: the first requests are not counted.

#include "sim/warmup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr int64_t kTurns = 5;
constexpr double kThink = 2;

/// Conversations that begin `rate` / kTurns times a second. Each turn has 200 new tokens and an
/// answer of 50.
ServingLoad conversations(double rate, int64_t count, int64_t counted, int64_t warmup) {
  ServingLoad load;
  const std::vector<RequestSpec> starts =
      draw_requests({.requests = count, .rate = rate / static_cast<double>(kTurns)});
  for (int64_t c = 0; c < count; ++c) {
    std::vector<ContentPart> parts;
    int64_t said = 0;
    for (int64_t turn = 0; turn < kTurns; ++turn) {
      const size_t index = load.requests.size();
      parts.push_back({2 * index + 1, 200});
      said += 200;
      RequestSpec r{.arrival_s = starts[static_cast<size_t>(c)].arrival_s,
                    .prompt = said,
                    .output = 50,
                    .session = c,
                    .follows = turn > 0,
                    .think_s = turn > 0 ? kThink : 0,
                    .first_part = load.parts.size(),
                    .part_count = parts.size(),
                    .output_key = 2 * index + 2};
      if (turn + 1 < kTurns) r.next = index + 1;
      load.parts.insert(load.parts.end(), parts.begin(), parts.end());
      load.requests.push_back(r);
      parts.push_back({2 * index + 2, 50});
      said += 50;
    }
  }
  load.counted = counted;
  load.warmup = warmup;
  return load;
}

ServingResult served(const ServingLoad& load, double token_s = 1e-5) {
  const ServerLimits limits{.software = software_of("vllm"), .cache_blocks = 1 << 13};
  return simulate_serving(load, limits, [&](const ServingBatch& b) {
    double tokens = static_cast<double>(b.decoding);
    for (const PromptChunk& p : b.prompts) tokens += static_cast<double>(p.tokens);
    return 5e-3 + token_s * tokens;
  });
}

double mean_prompt_of(const ServingResult& r) {
  double sum = 0;
  for (const RequestTimes& t : r.requests) sum += static_cast<double>(t.prompt);
  return sum / static_cast<double>(r.requests.size());
}

TEST(Warmup, CountsRequestsOfAllTurnsAtTheirRate) {
  constexpr double kRate = 10;
  const ServingResult cold = served(conversations(kRate, 60, 0, 0)),
                      warm = served(conversations(kRate, 400, 300, 1500));
  EXPECT_EQ(warm.all.requests, 300);
  EXPECT_EQ(warm.requests.size(), 300U);
  // A conversation takes 4 thinking times and its answers: 9 s or more, which two of them fill.
  EXPECT_GT(warm.warmup_requests, 90);
  EXPECT_LT(warm.warmup_requests, 400);
  EXPECT_EQ(cold.warmup_requests, 0);
  EXPECT_NEAR(warm.all.requests_per_s, kRate, 0.12 * kRate);
  EXPECT_LT(cold.all.requests_per_s, 0.85 * kRate);
  // Prompts have 200 to 1,200 tokens, 700 on average, in the long run.
  EXPECT_NEAR(mean_prompt_of(warm), 700, 40);
  EXPECT_TRUE(warm.keeps_up);
}

TEST(Warmup, CachesAreWarmWhenCountingBegins) {
  const ServingResult warm = served(conversations(10, 400, 300, 1500));
  ASSERT_TRUE(warm.prefix);
  int64_t prompts = 0;
  for (const RequestTimes& r : warm.requests) prompts += r.prompt;
  EXPECT_EQ(warm.prefix->prompts, prompts) << "of the counted requests";
  EXPECT_LE(warm.prefix->hits, warm.prefix->most_hits);
  // All but the new tokens of a turn and a block.
  const double hits = static_cast<double>(warm.prefix->hits);
  EXPECT_NEAR(hits / static_cast<double>(prompts), 1 - 215.0 / 700, 0.03);
}

TEST(Warmup, AllRequestsThatAreAskedForAreLeftOut) {
  ServingLoad load = conversations(10, 400, 300, 70);
  load.warms_up_fully = true;
  EXPECT_EQ(served(load).warmup_requests, 70);
  load.warmup = 700;
  EXPECT_EQ(served(load).warmup_requests, 700);
}

TEST(Warmup, WithoutItNothingChanges) {
  const ServingLoad all = conversations(10, 60, 0, 0);
  ServingLoad none = all;
  none.counted = static_cast<int64_t>(all.requests.size());
  none.warms_up_fully = true;
  const ServingResult a = served(all), b = served(none);
  EXPECT_EQ(b.warmup_requests, 0);
  ASSERT_EQ(a.requests.size(), b.requests.size());
  for (size_t i = 0; i < a.requests.size(); ++i) {
    EXPECT_EQ(a.requests[i].sent_s, b.requests[i].sent_s);
    EXPECT_EQ(a.requests[i].last_s, b.requests[i].last_s);
  }
  EXPECT_EQ(a.busy_share, b.busy_share);
  EXPECT_EQ(a.mean_batch, b.mean_batch);
  EXPECT_EQ(a.prefix->hits, b.prefix->hits);
  EXPECT_EQ(a.prefix->most_hits, b.prefix->most_hits);
}

TEST(Warmup, AnOverloadedServerDoesNotKeepUp) {
  for (const double factor : {1.3, 2.0, 5.0}) {
    // A turn takes 200 tokens and 50 more; 0.4 ms each make 10 turns a second at best.
    const ServingResult r = served(conversations(10 * factor, 660, 300, 3000), 4e-4);
    EXPECT_FALSE(r.keeps_up) << factor;
    EXPECT_EQ(r.all.requests, 300);
  }
  EXPECT_TRUE(served(conversations(6, 660, 300, 3000), 4e-4).keeps_up);
}

TEST(Warmup, IsTheSameEachTime) {
  const ServingLoad load = conversations(10, 400, 300, 1500);
  const ServingResult a = served(load), b = served(load);
  EXPECT_EQ(a.warmup_requests, b.warmup_requests);
  EXPECT_EQ(a.all.ttft.mean_s, b.all.ttft.mean_s);
}

}  // namespace
}  // namespace tilecast
