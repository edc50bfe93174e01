#include "sim/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>

#include "sim/prefix_pieces.h"
#include "sim/scheduler.h"
#include "test_support.h"

namespace tilecast {
namespace {

PrefixRule rule_of(std::string_view software) {
  return software_def(software_of(software)).prefix_cache;
}

/// Conversations, and prompts that share their first parts: some that end with a part, some in it.
ServingLoad random_load(Rng& rng, int64_t requests) {
  ServingLoad load;
  std::vector<std::vector<ContentPart>> known;
  uint64_t key = 1;
  for (int64_t i = 0; i < requests; ++i) {
    std::vector<ContentPart> parts;
    if (!known.empty() && rng.below(4) > 0) {
      parts = known[known.size() - 1 - rng.below(std::min<uint64_t>(known.size(), 20))];
      if (rng.below(3) == 0) parts.resize(1 + rng.below(parts.size()));
    }
    if (parts.empty() || rng.below(5) > 0)
      parts.push_back({key++, 1 + static_cast<int64_t>(rng.below(60))});
    RequestSpec r{.arrival_s = static_cast<double>(i),
                  .prompt = 0,
                  .output = 1 + static_cast<int64_t>(rng.below(30)),
                  .first_part = load.parts.size(),
                  .part_count = parts.size(),
                  .output_key = key++};
    for (const ContentPart& part : parts) r.prompt += part.tokens;
    load.parts.insert(load.parts.end(), parts.begin(), parts.end());
    parts.push_back({r.output_key, r.output});
    known.push_back(std::move(parts));
    load.requests.push_back(r);
  }
  return load;
}

/// One request after the other. Returns the tokens that each found.
std::vector<int64_t> hits_one_by_one(const ServingLoad& load, int64_t blocks, int64_t block_tokens,
                                     const PrefixRule& rule) {
  const PrefixPieces pieces(load, block_tokens);
  PrefixCache cache(blocks, rule);
  std::vector<int64_t> hits;
  for (size_t i = 0; i < load.requests.size(); ++i) {
    const RequestSpec& r = load.requests[i];
    const PrefixCache::Place found =
        cache.hold(cache.find(pieces.of(i), (r.prompt - 1) / block_tokens));
    hits.push_back(found.blocks * block_tokens);
    const int64_t tokens = r.prompt + r.output - 1;
    const int64_t own = blocks_for(tokens, block_tokens) - found.blocks;
    cache.take(own);
    const PrefixCache::Published published =
        cache.publish(pieces.of(i), found, tokens / block_tokens);
    cache.give(own - (published.place.blocks - found.blocks));
    cache.release(published.place);
    EXPECT_EQ(cache.count_free(), blocks);
  }
  return hits;
}

/// The same, block by block, as the files of vLLM describe it: blocks with a hash of their tokens
/// and all before them, and a queue of free ones. A block whose copy can be found already is freed
/// first.
std::vector<int64_t> hits_block_by_block(const ServingLoad& load, int64_t blocks,
                                         int64_t block_tokens) {
  using Hash = std::vector<std::pair<uint64_t, int64_t>>;  // parts and how much of them
  std::list<Hash> queue(static_cast<size_t>(blocks));      // free blocks; empty: no content
  std::map<Hash, std::list<Hash>::iterator> found_free;
  std::vector<int64_t> hits;
  for (const RequestSpec& r : load.requests) {
    std::vector<Hash> hashes;
    Hash all;
    int64_t in_block = 0;
    const auto add = [&](uint64_t key, int64_t tokens) {
      for (int64_t t = 0; t < tokens; ++t) {
        if (t == 0)
          all.emplace_back(key, 1);
        else
          all.back().second += 1;
        if (++in_block < block_tokens) continue;
        in_block = 0;
        hashes.push_back(all);
      }
    };
    for (size_t p = 0; p < r.part_count; ++p)
      add(load.parts[r.first_part + p].key, load.parts[r.first_part + p].tokens);
    const size_t most = static_cast<size_t>((r.prompt - 1) / block_tokens);
    add(r.output_key, r.output - 1);
    size_t hit = 0;
    std::vector<Hash> held;
    while (hit < std::min(most, hashes.size())) {
      const auto at = found_free.find(hashes[hit]);
      if (at == found_free.end()) break;
      queue.erase(at->second);
      found_free.erase(at);
      held.push_back(hashes[hit++]);
    }
    hits.push_back(static_cast<int64_t>(hit) * block_tokens);
    const auto needed = static_cast<size_t>(blocks_for(r.prompt + r.output - 1, block_tokens));
    for (size_t b = hit; b < needed; ++b) {
      if (!queue.front().empty()) found_free.erase(queue.front());
      queue.pop_front();
    }
    // A copy of a block that is free: that one is used again, and the copy is free.
    std::vector<Hash> own;
    size_t copies = 0;
    for (size_t b = hit; b < hashes.size(); ++b) {
      if (const auto at = found_free.find(hashes[b]); at != found_free.end()) {
        queue.erase(at->second);
        found_free.erase(at);
        copies += 1;
      }
      own.push_back(hashes[b]);
    }
    for (size_t b = 0; b < copies + needed - hashes.size(); ++b) queue.emplace_back();
    std::reverse(own.begin(), own.end());
    std::reverse(held.begin(), held.end());
    own.insert(own.end(), held.begin(), held.end());
    for (const Hash& hash : own) found_free[hash] = queue.insert(queue.end(), hash);
    EXPECT_EQ(static_cast<int64_t>(queue.size()), blocks);
  }
  return hits;
}

int64_t sum(const std::vector<int64_t>& values) {
  int64_t all = 0;
  for (const int64_t value : values) all += value;
  return all;
}

TEST(PrefixCache, FindsWhatAQueueOfBlocksWouldFind) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    const ServingLoad load = random_load(rng, 120);
    const auto block = static_cast<int64_t>(1 + rng.below(12));
    int64_t longest = 0;
    for (const RequestSpec& r : load.requests) longest = std::max(longest, r.prompt + r.output);
    const int64_t blocks = blocks_for(longest, block) + static_cast<int64_t>(rng.below(200));
    EXPECT_EQ(hits_one_by_one(load, blocks, block, rule_of("vllm")),
              hits_block_by_block(load, blocks, block))
        << "seed " << seed;
  }
}

TEST(PrefixCache, MoreCacheNeverFindsLess) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const ServingLoad load = random_load(rng, 150);
    int64_t longest = 0;
    for (const RequestSpec& r : load.requests) longest = std::max(longest, r.prompt + r.output);
    int64_t before = 0, least = -1;
    for (int64_t blocks = blocks_for(longest, 4); blocks < 4000; blocks += 1 + blocks / 8) {
      const int64_t hits = sum(hits_one_by_one(load, blocks, 4, rule_of("vllm")));
      EXPECT_GE(hits, before) << "seed " << seed << ", " << blocks << " blocks";
      before = hits;
      if (least < 0) least = hits;
    }
    EXPECT_GT(before, least);
    // Enough for all: the load's own.
    EXPECT_EQ(before, most_hit_tokens(load, PrefixPieces(load, 4), 4));
  }
}

/// Tokens that any request before had, block by block.
TEST(PrefixCache, ACacheOfAnySizeFindsWhatTheLoadHasInCommon) {
  Rng rng(7);
  const ServingLoad load = random_load(rng, 200);
  constexpr int64_t kBlock = 8;
  std::set<std::vector<std::pair<uint64_t, int64_t>>> seen;
  int64_t expected = 0;
  for (const RequestSpec& r : load.requests) {
    std::vector<std::pair<uint64_t, int64_t>> tokens;
    for (size_t p = 0; p < r.part_count; ++p) {
      for (int64_t t = 0; t < load.parts[r.first_part + p].tokens; ++t)
        tokens.emplace_back(load.parts[r.first_part + p].key, t);
    }
    for (int64_t t = 0; t + 1 < r.output; ++t) tokens.emplace_back(r.output_key, t);
    bool finds = true;
    for (size_t end = kBlock; end <= tokens.size(); end += kBlock) {
      const auto [at, added] =
          seen.insert({tokens.begin(), tokens.begin() + static_cast<long>(end)});
      finds = finds && !added && static_cast<int64_t>(end) < r.prompt;
      if (finds) expected += kBlock;
    }
  }
  EXPECT_GT(expected, 0);
  EXPECT_EQ(most_hit_tokens(load, PrefixPieces(load, kBlock), kBlock), expected);
}

TEST(PrefixCache, SglangEvictsWholeLeavesAfterFreeBlocks) {
  ServingLoad load;
  // Three prompts of 40 tokens, then the first again.
  for (const uint64_t key : {1, 2, 3, 1}) {
    load.requests.push_back({.prompt = 40,
                             .output = 1,
                             .first_part = load.parts.size(),
                             .part_count = 1,
                             .output_key = 100 + load.requests.size()});
    load.parts.push_back({key, 40});
  }
  // Ten blocks are lacking for the third prompt: a queue of blocks loses the last of the first
  // one's, SGLang all of them.
  EXPECT_EQ(hits_one_by_one(load, 110, 1, rule_of("vllm")).back(), 30);
  EXPECT_EQ(hits_one_by_one(load, 110, 1, rule_of("sglang")).back(), 0);
  EXPECT_EQ(hits_one_by_one(load, 120, 1, rule_of("sglang")).back(), 39);
}

// Servers.

double step_seconds(const ServingBatch& b) {
  double tokens = static_cast<double>(b.decoding);
  for (const PromptChunk& p : b.prompts) tokens += static_cast<double>(p.tokens);
  return 5e-3 + 1e-5 * tokens;
}

ServerLimits prefix_limits(std::string_view software, int64_t blocks) {
  const Software id = software_of(software);
  return {.software = id, .cache_blocks = blocks, .block_tokens = default_block_tokens(id)};
}

class EachServer : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(PrefixCache, EachServer, testing::Values("vllm", "sglang", "trtllm"));

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

TEST(PrefixCache, EachSoftwareFindsPromptsAtItsTime) {
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
