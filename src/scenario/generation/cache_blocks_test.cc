// Blocks of the cache, by hand.

#include "scenario/generation/cache_blocks.h"

#include <gtest/gtest.h>

namespace tilecast {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Decoder llama_8b() {
  Decoder d;
  d.caches = {{.layers = 32, .dim = 2 * 8 * 128, .kv_heads = 8}};
  return d;
}

TEST(CacheBlocks, AllLayersAlike) {
  // A block of Llama-3.1-8B: 16 tokens x 128 KiB = 2 MiB.
  const CacheBlocks b = divide_cache(llama_8b(), {.software = software_of("vllm"),
                                                  .cache_bytes = 10 * kGiB + 1,
                                                  .block_tokens = 16,
                                                  .max_model_len = 8192});
  EXPECT_EQ(b.blocks, 5120);
  EXPECT_EQ(b.tokens, 81920);
  EXPECT_DOUBLE_EQ(b.concurrency, 10);
  const CacheBlocks fp8 = divide_cache(llama_8b(), {.software = software_of("vllm"),
                                                    .cache_bytes = 10 * kGiB,
                                                    .ranks = 4,
                                                    .kv_dtype = DType::kFp8});
  EXPECT_EQ(fp8.blocks, 8 * 5120);
  EXPECT_EQ(divide_cache(llama_8b(),
                         {.software = software_of("vllm"), .cache_bytes = 10 * kGiB, .ranks = 16})
                .blocks,
            8 * 5120)
      << "8 key heads cannot be divided further";
}

TEST(CacheBlocks, ALatentCacheIsOnEveryRank) {
  Decoder d;
  d.caches = {{.layers = 61, .dim = 576}};
  const int64_t block = int64_t{64} * 61 * 576 * 2;
  for (const int64_t ranks : {1, 8})
    EXPECT_EQ(divide_cache(d, {.software = software_of("vllm"),
                               .cache_bytes = 100 * block,
                               .ranks = ranks,
                               .block_tokens = 64})
                  .blocks,
              100);
}

TEST(CacheBlocks, SlidingWindowsFormGroups) {
  // gpt-oss-20b: 12 layers each; a page of 16 tokens has 16 x 2 KiB.
  Decoder d;
  d.caches = {{.layers = 12, .dim = 1024, .window = 128, .kv_heads = 8},
              {.layers = 12, .dim = 1024, .kv_heads = 8}};
  const int64_t block = int64_t{12} * 16 * 1024 * 2;
  const CacheBlocks b = divide_cache(d, {.software = software_of("vllm"),
                                         .cache_bytes = 10000 * block,
                                         .block_tokens = 16,
                                         .max_model_len = 131072,
                                         .max_num_batched_tokens = 8192});
  EXPECT_EQ(b.blocks, 10000);
  EXPECT_EQ(b.tokens, 5000 * 16);
  // 131072 / 16 blocks of the full layers, and (127 + 8192) / 16 rounded up, + 1, of the others.
  EXPECT_DOUBLE_EQ(b.concurrency, 10000.0 / (8192 + 520 + 1));
}

TEST(CacheBlocks, StatesSetTheSizeOfBlocks) {
  // 4 attention layers with 1 KiB a token, 12 recurrent ones with a state of 100 KiB.
  Decoder d;
  d.caches = {{.layers = 4, .dim = 512, .kv_heads = 1}};
  d.recurrent_layers = 12;
  d.state_bytes = 12 * 100 * 1024;
  const CacheBlocks b = divide_cache(d, {.software = software_of("vllm"),
                                         .cache_bytes = kGiB,
                                         .block_tokens = 16,
                                         .max_model_len = 1120});
  EXPECT_EQ(b.block_tokens, 112) << "the first multiple of 16 that holds 100 KiB";
  EXPECT_EQ(b.blocks, kGiB / (112 * 1024 * 4));
  EXPECT_EQ(b.tokens, b.blocks / 4 * 112) << "one group of attention, three of states";
  EXPECT_DOUBLE_EQ(b.concurrency, static_cast<double>(b.blocks) / (10 + 3));
}

TEST(CacheBlocks, EachSoftwareHasItsOwnPools) {
  Decoder d;
  d.caches = {{.layers = 10, .dim = 512, .window = 1024, .kv_heads = 1},
              {.layers = 10, .dim = 512, .kv_heads = 1}};
  const CacheBlocks sglang = divide_cache(d, {.software = software_of("sglang"),
                                              .cache_bytes = kGiB,
                                              .block_tokens = 1,
                                              .max_model_len = 4096});
  EXPECT_EQ(sglang.tokens, static_cast<int64_t>(kGiB / (1.8 * 10 * 1024)));
  const CacheBlocks trtllm = divide_cache(d, {.software = software_of("trtllm"),
                                              .cache_bytes = kGiB,
                                              .block_tokens = 32,
                                              .max_model_len = 4096});
  EXPECT_DOUBLE_EQ(trtllm.concurrency, static_cast<double>(kGiB) / (10 * 1024 * (4096 + 1024)));
  EXPECT_EQ(divide_cache(d, {.software = software_of("vllm"), .cache_bytes = 0}).blocks, 0);
}

}  // namespace
}  // namespace tilecast
