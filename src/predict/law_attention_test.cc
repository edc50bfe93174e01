// Laws of prompts and encoders by software: heads, pages, passes beside attention.

#include <gtest/gtest.h>

#include <cmath>

#include "law_seconds.h"
#include "predict/law.h"

namespace tilecast {
namespace {

TEST(PrefillLaw, HeadsTakeTheTimeOfTheKernelThatComputesThem) {
  // Measured on L40S, H100 and H200: 72 as long as 80; on H100 with TensorRT-LLM 1.6 times 64.
  const auto seconds = [](const char* gpu, int64_t head, Software software) {
    return law_seconds(kernel_of("attention", DType::kBf16,
                                 {{"batch", 8},
                                  {"queries", 8192},
                                  {"keys", 8192},
                                  {"head_dim", head},
                                  {"heads", 16},
                                  {"kv_heads", 16},
                                  {"causal", 0}}),
                       find_device(gpu), {.software = software});
  };
  const Software vllm = software_of("vllm"), trtllm = software_of("trtllm");
  for (const char* gpu : {"A100", "L40S", "H100", "B200"})
    EXPECT_NEAR(seconds(gpu, 72, vllm) / seconds(gpu, 80, vllm), 1, 0.01) << gpu;
  EXPECT_NEAR(seconds("L40S", 80, vllm) / seconds("L40S", 96, vllm), 1, 0.01);
  EXPECT_NEAR(seconds("H100", 72, trtllm) / seconds("H100", 128, trtllm), 1, 0.01);
  EXPECT_NEAR(seconds("H100", 160, vllm) / seconds("H100", 192, vllm), 1, 0.01);
  EXPECT_LT(seconds("B200", 80, vllm), 0.95 * seconds("B200", 96, vllm));
}

TEST(PrefillLaw, OnlyPromptsWriteACache) {
  // 20,000 short sequences, limited by memory: 2.7 GB of queries, keys, values and results.
  const auto seconds = [](int64_t causal, Software software) {
    return law_seconds(kernel_of("attention", DType::kBf16,
                                 {{"batch", 20000},
                                  {"queries", 32},
                                  {"keys", 32},
                                  {"head_dim", 64},
                                  {"heads", 8},
                                  {"kv_heads", 8},
                                  {"causal", causal}}),
                       find_device("L40S"), {.software = software});
  };
  EXPECT_LT(seconds(0, software_of("vllm")), 1.3 * seconds(0, software_of("pytorch")));
  EXPECT_GT(seconds(1, software_of("vllm")), 1.5 * seconds(1, software_of("pytorch")));
}

TEST(PrefillLaw, PagedKeysAreComputedInWideTiles) {
  // Heads of 64: 256 keys a tile. L40S takes as long for 16 as for 64 tokens of many prompts.
  const auto seconds = [](const char* gpu, int64_t tokens, Software software) {
    return law_seconds(kernel_of("attention", DType::kFp16,
                                 {{"batch", 64},
                                  {"queries", tokens},
                                  {"keys", tokens},
                                  {"head_dim", 64},
                                  {"heads", 32},
                                  {"kv_heads", 8},
                                  {"causal", 1}}),
                       find_device(gpu), {.software = software, .caches = Caches::kWarm});
  };
  const Software vllm = software_of("vllm"), pytorch = software_of("pytorch");
  EXPECT_LT(seconds("L40S", 64, vllm), 1.15 * seconds("L40S", 16, vllm));
  EXPECT_GT(seconds("L40S", 64, vllm), 1.3 * seconds("L40S", 64, pytorch));
  // FlashAttention 2 needs compute capability 8.
  for (const char* gpu : {"T4", "V100"})
    EXPECT_LT(seconds(gpu, 128, vllm), 1.5 * seconds(gpu, 128, pytorch)) << gpu;
}

TEST(PrefillLaw, PromptsExpandedFromLatentVectorsWriteAShortCache) {
  // Measured with TensorRT-LLM on H100, 128 heads, 8192 tokens in 16 prompts: 0.69 ms. Rotated
  // whole and written for each head, these queries, keys and values would take 1.7 ms by the
  // law.
  const Kernel kernel = kernel_of("attention", DType::kBf16,
                                  {{"batch", 16},
                                   {"queries", 512},
                                   {"keys", 512},
                                   {"head_dim", 192},
                                   {"v_head_dim", 128},
                                   {"heads", 128},
                                   {"kv_heads", 128},
                                   {"causal", 1}});
  const double seconds = law_seconds(kernel, find_device("H100"),
                                     {.software = software_of("trtllm"), .caches = Caches::kWarm});
  EXPECT_NEAR(std::log(seconds / 0.69e-3), 0, std::log(1.5));
}

TEST(PrefillLaw, LatentVectorsHaveKernelsOfTheirOwn) {
  // Measured with SGLang on H100 (FlashAttention 3), 128 heads, 2 prompts of 4096 tokens: 8.1 ms.
  const Kernel kernel = kernel_of("cached_attention", DType::kBf16,
                                  {{"batch", 2},
                                   {"queries", 4096},
                                   {"keys", 4096},
                                   {"head_dim", 576},
                                   {"v_head_dim", 512},
                                   {"heads", 128},
                                   {"latent", 1},
                                   {"causal", 1}});
  const double seconds = law_seconds(kernel, find_device("H100"),
                                     {.software = software_of("sglang"), .caches = Caches::kWarm});
  EXPECT_NEAR(std::log(seconds / 8.1e-3), 0, std::log(1.5));
}

TEST(PrefillLaw, TensorRtLlmReadsPromptsOfOneTokenByQueryHead) {
  // Measured on L40S: 64 query heads on 8 key heads take as long as 64 on 64.
  const auto seconds = [](int64_t kv_heads, Software software) {
    return law_seconds(kernel_of("attention", DType::kBf16,
                                 {{"batch", 128},
                                  {"queries", 1},
                                  {"keys", 1},
                                  {"head_dim", 128},
                                  {"heads", 64},
                                  {"kv_heads", kv_heads},
                                  {"causal", 1}}),
                       find_device("L40S"), {.software = software, .caches = Caches::kWarm});
  };
  EXPECT_NEAR(seconds(8, software_of("trtllm")) / seconds(64, software_of("trtllm")), 1, 0.1);
  EXPECT_LT(seconds(8, software_of("vllm")), 0.5 * seconds(64, software_of("vllm")));
}

}  // namespace
}  // namespace tilecast
