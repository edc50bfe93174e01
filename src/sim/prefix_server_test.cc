// Servers with prefix caches, and conversations.

#include <gtest/gtest.h>

#include "prefix_loads.h"
#include "sim/scheduler.h"
#include "test_support.h"

namespace tilecast {
namespace {

class EachServer : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(PrefixServer, EachServer, testing::Values("vllm", "sglang", "trtllm"));

double step_seconds(const ServingBatch& b) {
  double tokens = static_cast<double>(b.decoding);
  for (const PromptChunk& p : b.prompts) tokens += static_cast<double>(p.tokens);
  return 5e-3 + 1e-5 * tokens;
}

ServerLimits prefix_limits(std::string_view software, int64_t blocks) {
  const Software id = software_of(software);
  return {.software = id, .cache_blocks = blocks, .block_tokens = default_block_tokens(id)};
}

TEST_P(EachServer, WithoutCommonPromptsNothingChanges) {
  Rng rng(3);
  ServingLoad plain;
  for (int i = 0; i < 300; ++i)
    plain.requests.push_back({0.03 * i, 1 + static_cast<int64_t>(rng.below(900)),
                              1 + static_cast<int64_t>(rng.below(90))});
  ServingLoad own = plain;
  for (RequestSpec& r : own.requests) {
    r.first_part = own.parts.size();
    r.part_count = 1;
    own.parts.push_back({own.parts.size() + 1, r.prompt});
    r.output_key = 1000 + own.parts.size();
  }
  const ServerLimits limits =
      prefix_limits(GetParam(), 40'000 / default_block_tokens(software_of(GetParam())));
  const ServingResult a = simulate_serving(plain, limits, step_seconds),
                      b = simulate_serving(own, limits, step_seconds);
  ASSERT_EQ(a.preemptions, 0);
  for (size_t i = 0; i < a.requests.size(); ++i) {
    EXPECT_EQ(a.requests[i].first_s, b.requests[i].first_s);
    EXPECT_EQ(a.requests[i].last_s, b.requests[i].last_s);
  }
  EXPECT_FALSE(a.prefix);
  ASSERT_TRUE(b.prefix);
  EXPECT_EQ(b.prefix->hits, 0);
  EXPECT_GT(b.prefix->evicted, 0);
  // Off: the requests as such.
  ServerLimits off = limits;
  off.prefix_caching = false;
  EXPECT_FALSE(simulate_serving(own, off, step_seconds).prefix);
}

TEST_P(EachServer, AnyLoadEndsAndKeepsToWhatItHasInCommon) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    ServingLoad load = random_load(rng, 150);
    for (RequestSpec& r : load.requests) r.arrival_s *= 0.004;
    int64_t longest = 0;
    for (const RequestSpec& r : load.requests) longest = std::max(longest, r.prompt + r.output);
    ServerLimits limits = prefix_limits(GetParam(), 0);
    limits.block_tokens = static_cast<int64_t>(1 + rng.below(9));
    limits.cache_blocks =
        blocks_for(longest, limits.block_tokens) + 1 + static_cast<int64_t>(rng.below(400));
    limits.dp = seed % 5 == 0 ? 2 : 1;
    limits.pp = seed % 7 == 0 ? 2 : 1;
    limits.tokens_per_step = seed % 3 == 0 ? 1.7 : 1;
    Fleet fleet;
    fleet.pool = {.servers = 1, .limits = limits, .step_s = [](auto ranks, auto& stage_s) {
                    stage_s.insert(stage_s.end(), 1, step_seconds(ranks.front()));
                  }};
    if (limits.pp == 2)
      fleet.pool.step_s = [](auto ranks, auto& stage_s) {
        stage_s.insert(stage_s.end(), 2, step_seconds(ranks.front()));
      };
    const ServingResult r = simulate_fleet(load, fleet);
    ASSERT_TRUE(r.prefix);
    EXPECT_LE(r.prefix->hits, r.prefix->most_hits) << "seed " << seed;
    EXPECT_LE(r.prefix->cached, limits.cache_blocks * limits.block_tokens * limits.dp);
    for (const RequestTimes& t : r.requests) EXPECT_GT(t.last_s, t.sent_s);
  }
}

TEST_P(EachServer, AnAnsweredPromptIsFoundButForItsLastToken) {
  ServingLoad load;
  for (int i = 0; i < 2; ++i)
    load.requests.push_back({.arrival_s = 10.0 * i,
                             .prompt = 640,
                             .output = 1,
                             .first_part = 0,
                             .part_count = 1,
                             .output_key = 5});
  load.parts = {{1, 640}};
  std::vector<int64_t> prompts;
  const ServerLimits limits = prefix_limits(GetParam(), 10'000);
  const ServingResult r = simulate_serving(load, limits, [&](const ServingBatch& b) {
    for (const PromptChunk& p : b.prompts) prompts.push_back(p.tokens);
    return 1.0;
  });
  const int64_t block = default_block_tokens(limits.software);
  EXPECT_EQ(prompts, (std::vector<int64_t>{640, block}));
  EXPECT_EQ(r.prefix->hits, 640 - block);
  EXPECT_EQ(r.prefix->prompts, 1280);
}

/// Two prompts of which the cache holds one, then the first again. A step takes 1 s and reads 32
/// tokens of the host's memory in 0.1 s.
std::vector<RequestTimes> with_host(std::string_view software, ServingResult* result = nullptr) {
  ServingLoad load;
  for (const uint64_t key : {1, 2, 1}) {
    const size_t i = load.requests.size();
    load.requests.push_back({.arrival_s = 10.0 * static_cast<double>(i),
                             .prompt = 640,
                             .output = 1,
                             .first_part = i,
                             .part_count = 1,
                             .output_key = 50 + i});
    load.parts.push_back({key, 640});
  }
  const int64_t block = default_block_tokens(software_of(software));
  ServerLimits limits = prefix_limits(software, 640 / block);
  limits.host_blocks = 10'000;
  limits.host_block_s = 0.1 * static_cast<double>(block) / 32;
  limits.layers = 10;
  const ServingResult r = simulate_serving(load, limits, [](const ServingBatch&) { return 1.0; });
  if (result != nullptr) *result = r;
  return r.requests;
}

TEST_P(EachServer, ReadsTheHostsMemoryInItsWay) {
  ServingResult r;
  with_host(GetParam(), &r);
  const int64_t block = default_block_tokens(software_of(GetParam()));
  EXPECT_EQ(r.prefix->hits, 0);
  EXPECT_EQ(r.prefix->host_hits, 640 - block);
  const double read_s = 0.1 * static_cast<double>(640 - block) / 32,
               ttft_s = r.requests[2].ttft_s();
  // SGLang's layers wait for their own blocks only.
  EXPECT_NEAR(ttft_s, std::string_view(GetParam()) == "sglang" ? read_s + 0.1 : read_s + 1, 1e-9);
  EXPECT_NEAR(r.requests[1].ttft_s(), 1, 1e-9);
}

TEST(PrefixServer, OthersGoOnWhileVllmReadsTheHostsMemory) {
  ServingLoad load;
  for (const uint64_t key : {1, 2, 1, 3}) {
    const size_t i = load.requests.size();
    load.requests.push_back({.arrival_s = i < 2 ? 10.0 * static_cast<double>(i) : 20,
                             .prompt = i == 3 ? 16 : 640,
                             .output = i == 3 ? 4 : 1,
                             .first_part = i,
                             .part_count = 1,
                             .output_key = 50 + i});
    load.parts.push_back({key, load.requests.back().prompt});
  }
  const auto last_s = [&](std::string_view software) {
    ServerLimits limits =
        prefix_limits(software, 672 / default_block_tokens(software_of(software)));
    limits.host_blocks = 10'000;
    limits.host_block_s = 0.5;
    return simulate_serving(load, limits, [](const ServingBatch&) { return 1.0; })
        .requests[3]
        .last_s;
  };
  EXPECT_EQ(last_s("vllm"), 24);
  EXPECT_GT(last_s("trtllm"), 28);
}

TEST(PrefixServer, EachSoftwareFindsPromptsAtItsTime) {
  ServingLoad load;
  for (int i = 0; i < 2; ++i)
    load.requests.push_back({.prompt = 640,
                             .output = 2,
                             .first_part = 0,
                             .part_count = 1,
                             .output_key = 5 + static_cast<uint64_t>(i)});
  load.parts = {{1, 640}};
  const auto found = [&](std::string_view software) {
    return simulate_serving(load, prefix_limits(software, 10'000), step_seconds).prefix->hits;
  };
  // Both come at once. In vLLM the second one finds in the same step what the first one computes.
  EXPECT_EQ(found("vllm"), 624);
  EXPECT_EQ(found("sglang"), 0);
  EXPECT_EQ(found("trtllm"), 0);
}

TEST(Sessions, ATurnIsSentAfterTheAnswerAndTheTimeToThink) {
  ServingLoad load;
  load.requests = {{.prompt = 100, .output = 3, .session = 0, .next = 1},
                   {.prompt = 200, .output = 2, .session = 0, .follows = true, .think_s = 2.5},
                   {.arrival_s = 4, .prompt = 50, .output = 1}};
  const ServingResult r =
      simulate_serving(load, prefix_limits("vllm", 1000), [](const ServingBatch&) { return 1.0; });
  // In the order of sending.
  EXPECT_EQ(r.requests[0].last_s, 3);
  EXPECT_EQ(r.requests[1].sent_s, 4);
  EXPECT_EQ(r.requests[1].prompt, 50);
  EXPECT_EQ(r.requests[2].sent_s, 5.5);
  EXPECT_EQ(r.requests[2].first_s, 6.5);
}

TEST(Sessions, AClientHasOneConversationAfterTheOther) {
  ServingLoad load;
  load.concurrency = 1;
  for (size_t s = 0; s < 3; ++s) {
    load.requests.push_back({.prompt = 10, .output = 1, .next = 2 * s + 1});
    load.requests.push_back({.prompt = 20, .output = 1, .follows = true, .think_s = 1});
  }
  const ServingResult r =
      simulate_serving(load, prefix_limits("vllm", 1000), [](const ServingBatch&) { return 1.0; });
  EXPECT_EQ(r.most_in_flight, 1);
  std::vector<double> sent;
  for (const RequestTimes& t : r.requests) sent.push_back(t.sent_s);
  EXPECT_EQ(sent, (std::vector<double>{0, 2, 3, 5, 6, 8}));
}

TEST(Sessions, ARouterCanKeepThemOnTheirServer) {
  ServingLoad load;
  std::vector<ContentPart> said;
  for (size_t s = 0; s < 8; ++s) {
    for (size_t t = 0; t < 4; ++t) {
      const size_t i = load.requests.size();
      RequestSpec r{.arrival_s = 0.001 * static_cast<double>(s),
                    .prompt = 160 * static_cast<int64_t>(t + 1),
                    .output = 1,
                    .session = static_cast<int64_t>(s),
                    .follows = t > 0,
                    .think_s = 0.01 * static_cast<double>((7 * i) % 5),
                    .first_part = load.parts.size(),
                    .part_count = t + 1,
                    .output_key = 1000 + i};
      if (t < 3) r.next = i + 1;
      for (size_t p = 0; p <= t; ++p) load.parts.push_back({1 + s * 10 + p, 160});
      load.requests.push_back(r);
    }
  }
  Fleet fleet;
  fleet.pool = {
      .servers = 4, .limits = prefix_limits("vllm", 1000), .step_s = [](auto ranks, auto& stage_s) {
        stage_s.push_back(step_seconds(ranks.front()));
      }};
  fleet.router = Router::kRoundRobin;
  const int64_t in_turn = simulate_fleet(load, fleet).prefix->hits;
  fleet.router = Router::kSession;
  const ServingResult kept = simulate_fleet(load, fleet);
  EXPECT_GT(kept.prefix->hits, in_turn);
  EXPECT_EQ(kept.prefix->hits, kept.prefix->most_hits);
}

}  // namespace
}  // namespace tilecast
