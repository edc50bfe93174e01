#include "sim/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>

#include "prefix_loads.h"
#include "sim/prefix_pieces.h"
#include "sim/scheduler.h"
#include "test_support.h"

namespace tilecast {
namespace {

PrefixRule rule_of(std::string_view software) {
  return software_def(software_of(software)).prefix_cache;
}

/// One request after the other. Returns the tokens that each found, with those in the host's memory
/// if there is any.
std::vector<int64_t> hits_one_by_one(const ServingLoad& load, int64_t blocks, int64_t block_tokens,
                                     const PrefixRule& rule, HostCache* host = nullptr) {
  const PrefixPieces pieces(load, block_tokens);
  PrefixCache cache(blocks, rule, host);
  std::vector<int64_t> hits;
  for (size_t i = 0; i < load.requests.size(); ++i) {
    const RequestSpec& r = load.requests[i];
    const PrefixCache::Place found =
        cache.hold(cache.find(pieces.of(i), (r.prompt - 1) / block_tokens));
    hits.push_back(found.blocks * block_tokens);
    if (host != nullptr) {
      hits.back() += block_tokens * host->find(pieces.of(i), found.piece, found.in_piece,
                                               (r.prompt - 1) / block_tokens - found.blocks);
      host->touch(pieces.of(i));
    }
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

class EachCache : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(PrefixCache, EachCache, testing::Values("vllm", "sglang", "trtllm"));

TEST_P(EachCache, WhatTheGpuLosesTheHostKeeps) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const ServingLoad load = random_load(rng, 120);
    int64_t longest = 0;
    for (const RequestSpec& r : load.requests) longest = std::max(longest, r.prompt + r.output);
    const int64_t blocks = blocks_for(longest, 4) + static_cast<int64_t>(rng.below(30));
    HostCache all(1 << 20);
    EXPECT_EQ(sum(hits_one_by_one(load, blocks, 4, rule_of(GetParam()), &all)),
              most_hit_tokens(load, PrefixPieces(load, 4), 4));
    int64_t before = sum(hits_one_by_one(load, blocks, 4, rule_of(GetParam())));
    for (const int64_t size : {50, 200, 800, 3200}) {
      HostCache host(size);
      const int64_t hits = sum(hits_one_by_one(load, blocks, 4, rule_of(GetParam()), &host));
      EXPECT_GE(hits, before) << "seed " << seed << ", " << size << " blocks";
      EXPECT_LE(host.blocks(), size);
      before = hits;
    }
  }
}

TEST(HostCache, LosesTheLeastRecentlyUsedFromTheirEnds) {
  const std::vector<PrefixPiece> a = {{1, 4, 11}, {2, 6, 12}}, b = {{3, 5, 13}};
  HostCache host(12);
  host.store(11, 0, 4);
  host.store(12, 0, 6);
  host.touch(a);
  EXPECT_EQ(host.find(a, 0, 0, 100), 10);
  EXPECT_EQ(host.find(a, 0, 2, 100), 8);
  EXPECT_EQ(host.find(a, 1, 5, 100), 1);
  host.store(13, 0, 5);
  EXPECT_EQ(host.find(a, 0, 0, 100), 7);
  EXPECT_EQ(host.find(b, 0, 0, 100), 5);
  host.touch(a);
  host.store(12, 3, 6);
  EXPECT_EQ(host.find(a, 0, 0, 100), 10);
  EXPECT_EQ(host.find(b, 0, 0, 100), 2);
  EXPECT_EQ(host.blocks(), 12);
}

}  // namespace
}  // namespace tilecast
