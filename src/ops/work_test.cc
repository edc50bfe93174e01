#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "ops/expert_load.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "test_support.h"

namespace tilecast {
namespace {

std::vector<Kernel> lower_first(const std::string& text) {
  const Graph graph = parse_graph(text, "test");
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes.front(), kernels);
  return kernels;
}

TEST(Linear, WorkIsCountedByHand) {
  const auto kernels = lower_first(
      "input x: fp32[4, 128, 256]\nweight w: fp32[512, 256]\nweight b: fp32[512]\ny = linear(x, w, "
      "b)\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].flops, 2 * 512 * 512 * 256);
  EXPECT_EQ(kernels[0].read_bytes, 4 * (512 * 256 + 512 * 256 + 512));
  EXPECT_EQ(kernels[0].write_bytes, 4 * 512 * 512);
}

TEST(Pointwise, BroadcastInputsAreReadOnceAndTheSameInputOnce) {
  auto kernels = lower_first("input x: fp32[8, 64]\ninput y: fp32[64]\nz = add(x, y)\n");
  EXPECT_EQ(kernels[0].read_bytes, 4 * (8 * 64 + 64));
  kernels = lower_first("input x: fp32[8, 64]\nz = mul(x, x)\n");
  EXPECT_EQ(kernels[0].read_bytes, 4 * 8 * 64);
}

TEST(BatchNorm, ImagesStoredByPixelAreReadTwiceInTraining) {
  const std::string text =
      "input x: fp16[2, 16, 8, 8]\nweight w: fp32[16]\nweight b: fp32[16]\n"
      "y = batch_norm(x, w, b) {training=1";
  const int64_t bytes = 2 * 2 * 16 * 64, parameters = 2 * 4 * 16;
  const auto by_channel = lower_first(text + "}\n");
  EXPECT_TRUE(by_channel[0].is<Rows>());
  EXPECT_EQ(by_channel[0].read_bytes, bytes + parameters);
  const auto by_pixel = lower_first(text + ", channels_last=1}\n");
  ASSERT_TRUE(by_pixel[0].is<Stream>());
  EXPECT_EQ(std::get<Stream>(by_pixel[0].shape).rows, 16);
  EXPECT_EQ(by_pixel[0].read_bytes, 2 * (bytes + parameters));
  EXPECT_EQ(by_pixel[0].flops, by_channel[0].flops);
}

/// megatron-core's rotary embedding without Transformer Engine's kernel: six passes over x forward,
/// two of them with half or twice the reads, and the angles in fp32.
TEST(Rotary, StepByStepReadsAndWritesEachStep) {
  const std::string x = "input x: bf16[2, 4, 128, 64]\n";
  const auto one = lower_first(x + "y = rotary(x)\n");
  ASSERT_EQ(one.size(), 1u);
  const int64_t bytes = 2 * 2 * 4 * 128 * 64, angles = 4 * 128 * 64;
  EXPECT_EQ(one[0].bytes(), 2 * bytes);
  const auto total = [](const std::vector<Kernel>& kernels) {
    return std::accumulate(kernels.begin(), kernels.end(), int64_t{0},
                           [](int64_t sum, const Kernel& k) { return sum + k.bytes(); });
  };
  const auto steps = lower_first(x + "y = rotary(x) {steps=1}\n");
  EXPECT_EQ(steps.size(), 6u + 6u);
  EXPECT_EQ(total(steps), 12 * bytes + 11 * angles);
  const auto back = lower_first(x + "y = rotary(x) {steps=1, reverse=1}\n");
  EXPECT_EQ(back.size(), 9u);
  EXPECT_EQ(total(back), 17 * bytes);
}

TEST(Views, LaunchNothingAndShareMemory) {
  const Graph graph = parse_graph("input x: fp32[4, 6]\ny = transpose(x) {order=[1, 0]}\n", "t");
  EXPECT_EQ(graph.tensor(graph.outputs[0]).storage, 0);
  EXPECT_FALSE(graph.tensor(graph.outputs[0]).contiguous);
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes[0], kernels);
  EXPECT_TRUE(kernels.empty());
}

/// Pairs of one head and sequence, counted one by one.
int64_t counted_pairs(int64_t queries, int64_t keys, bool causal, int64_t window) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t last = causal ? keys - queries + i : keys - 1;
    const int64_t seen = last + 1;
    pairs += window == 0 ? seen : std::min(seen, window);
  }
  return pairs;
}

TEST(Attention, FlopsAreFourForEachPairAndElementOfAHead) {
  for (const int64_t queries : {1, 7, 100}) {
    for (const int64_t past : {0, 5, 200}) {
      for (const int64_t window : {0, 3, 64, 1000}) {
        for (const bool causal : {false, true}) {
          const SizeList sizes = {
              {"batch", 2}, {"queries", queries}, {"keys", queries + past}, {"head_dim", 64},
              {"heads", 8}, {"kv_heads", 2},      {"window", window},       {"causal", causal}};
          const Kernel kernel = kernels_of_sizes("attention", DType::kBf16, sizes).front();
          EXPECT_EQ(kernel.flops,
                    4 * 64 * 8 * 2 * counted_pairs(queries, queries + past, causal, window))
              << queries << " " << past << " " << window << " " << causal;
        }
      }
    }
  }
}

TEST(Attention, ADecodeReadsTheCacheOnceInItsOwnType) {
  SizeList sizes = {{"batch", 4},  {"keys", 1024},  {"head_dim", 128},
                    {"heads", 32}, {"kv_heads", 8}, {"kv_dtype", DType::kFp8}};
  const Kernel kernel = kernels_of_sizes("cached_attention", DType::kBf16, sizes).front();
  EXPECT_TRUE(kernel.as<Attention>()->is_decode());
  EXPECT_EQ(kernel.read_bytes, 4 * 1024 * 2 * 8 * 128 + 4 * 32 * 128 * 2);
  EXPECT_EQ(kernel.write_bytes, 4 * 32 * 128 * 2);
  integer_in(sizes, "kv_heads") = 5;
  EXPECT_ERROR(kernels_of_sizes("cached_attention", DType::kBf16, sizes), kInput,
               "5 kv_heads do not divide 32 heads");
}

TEST(Attention, ValuesMayHaveAnotherSizeThanKeys) {
  SizeList sizes = {{"batch", 2}, {"queries", 3},   {"keys", 10},
                    {"heads", 4}, {"head_dim", 48}, {"v_head_dim", 32}};
  const Kernel kernel = kernels_of_sizes("attention", DType::kBf16, sizes).front();
  EXPECT_EQ(kernel.as<Attention>()->v_head_dim, 32);
  EXPECT_EQ(kernel.flops, 2 * (48 + 32) * 3 * 10 * 4 * 2);
  EXPECT_EQ(kernel.read_bytes, 2 * 2 * 4 * (3 * 48 + 10 * (48 + 32)));
  EXPECT_EQ(kernel.write_bytes, 2 * 2 * 4 * 3 * 32);
  const Kernel backward = kernels_of_sizes("attention_backward", DType::kBf16, sizes).front();
  EXPECT_EQ(backward.flops, kernel.flops / 2 * 5);
  integer_in(sizes, "v_head_dim") = 0;
  EXPECT_EQ(kernels_of_sizes("attention", DType::kBf16, sizes).front().as<Attention>()->v_head_dim,
            48);
}

TEST(Attention, ALatentCacheHoldsOneVectorPerTokenForAllHeads) {
  SizeList sizes = {{"batch", 2}, {"keys", 10}, {"heads", 4}, {"head_dim", 48}, {"v_head_dim", 32}};
  const Kernel plain = kernels_of_sizes("cached_attention", DType::kBf16, sizes).front();
  EXPECT_FALSE(plain.as<Attention>()->latent);
  EXPECT_EQ(plain.read_bytes, 2 * 2 * (4 * 48 + 10 * 4 * (48 + 32)));
  sizes.push_back({"latent", 1});
  const Kernel latent = kernels_of_sizes("cached_attention", DType::kBf16, sizes).front();
  EXPECT_TRUE(latent.as<Attention>()->latent);
  EXPECT_EQ(latent.as<Attention>()->kv_heads, 1);
  EXPECT_EQ(latent.flops, plain.flops);
  EXPECT_EQ(latent.read_bytes, 2 * 2 * (4 * 48 + 10 * 48));
  sizes.push_back({"kv_heads", 2});
  EXPECT_ERROR(kernels_of_sizes("cached_attention", DType::kBf16, sizes), kInput,
               "a latent cache has 1 kv_heads and a v_head_dim of at most head_dim, found 2 and 32 "
               "of 48");
}

TEST(Matmul, AQuantizedOperandIsStoredAsTheSchemeHasIt) {
  SizeList sizes = {{"batch", 3}, {"m", 4}, {"n", 5}, {"k", 64}};
  const Kernel plain = kernels_of_sizes("matmul", DType::kBf16, sizes).front();
  EXPECT_EQ(plain.scheme, QuantScheme::kNone);
  sizes.push_back({"scheme", QuantScheme::kFp8});
  const Kernel kernel = kernels_of_sizes("matmul", DType::kBf16, sizes).front();
  EXPECT_EQ(kernel.shape, plain.shape);
  EXPECT_EQ(kernel.flops, plain.flops);
  EXPECT_EQ(kernel.compute_dtype(), DType::kFp8);
  EXPECT_EQ(plain.bytes() - kernel.bytes(), 3 * 64 * 5) << "a byte for each weight";
  EXPECT_ERROR(parse_graph("input x: bf16[2, 4, 8]\ninput w: bf16[2, 8, 4]\n"
                           "y = matmul(x, w) {scheme=fp8}\n",
                           "a.tcg"),
               kInput, "expected a weight of fp8, found bf16");
}

TEST(Fp8Linear, ItsInputIsTheOneThatWasCast) {
  const auto parse = [](const char* x) {
    return parse_graph(std::string("input x: bf16") + x +
                           "\ninput w: bf16[128, 256]\ninput a: fp8[64, 256]\n"
                           "input b: fp8[128, 256]\ninput c: fp8[256, 64]\n"
                           "input d: fp8[256, 128]\n"
                           "y = fp8_linear(x, w, a, b, c, d) {scheme=fp8}\n",
                       "a.tcg");
  };
  EXPECT_NO_THROW(parse("[64, 256]"));
  EXPECT_ERROR(parse("[]"), kInput, "rows of the same length");
  EXPECT_ERROR(parse("[64, 128]"), kInput, "rows of the same length");
}

TEST(Experts, ReadTheWeightsOfBusyExpertsOnly) {
  SizeList sizes = {
      {"tokens", 2}, {"ffn_dim", 512}, {"hidden_dim", 256}, {"num_experts", 64}, {"top_k", 4}};
  const Kernel kernel = kernels_of_sizes("experts", DType::kBf16, sizes).front();
  EXPECT_EQ(kernel.as<Experts>()->active_experts, 8);
  EXPECT_EQ(kernel.flops, 2 * 8 * 3 * 512 * 256);
  EXPECT_EQ(kernel.read_bytes, 8 * 3 * 512 * 256 * 2 + 2 * 256 * 2);
  sizes.push_back({"scheme", QuantScheme::kFp8});
  EXPECT_EQ(kernels_of_sizes("experts", DType::kBf16, sizes).front().read_bytes,
            8 * 3 * 512 * 256 + 2 * 256 * 2);
}

TEST(ExpertLoad, OfMoreExpertsThanAnyModelHasIsRefusedWhereItIsUneven) {
  EXPECT_EQ(expert_load(64, 2, 100'000'000, 1, 0).assignments, 128);
  EXPECT_ERROR(expert_load(64, 2, 100'000'000, 1, 101), kUnsupported,
               "an uneven load of 100000000 experts; expected at most 65536");
}

TEST(Experts, ASkewedLoadLeavesSomeIdleAndFillsOneRank) {
  const ExpertLoad even = expert_load(256, 8, 256, 8, 0);
  const ExpertLoad skewed = expert_load(256, 8, 256, 8, 120);
  EXPECT_EQ(even.active_experts, 32);
  EXPECT_EQ(even.assignments, 256);
  EXPECT_LT(skewed.active_experts, 32);
  EXPECT_GT(skewed.assignments, 256);
  // All ranks together do all the work.
  EXPECT_NEAR(expert_load(256, 8, 256, 1, 120).assignments, 2048, 1);
}

/// Random layers: every pair is computed by an expert, no expert gets a token twice, and the
/// busiest rank has at least the mean and never less with a larger exponent.
TEST(Experts, ASkewedLoadKeepsAllTokensAndGrowsWithTheExponent) {
  Rng rng(19);
  int capped = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t ranks = int64_t{1} << rng.below(6);
    const int64_t experts = ranks * static_cast<int64_t>(1 + rng.below(12));
    const int64_t top_k =
        1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(std::min<int64_t>(experts, 10))));
    const int64_t tokens = rng.log_uniform(18);
    const auto all = static_cast<double>(tokens * top_k);
    double before = all / static_cast<double>(ranks);
    for (int64_t skew = 1; skew <= 300; skew += static_cast<int64_t>(1 + rng.below(40))) {
      const std::vector<double> pairs = expert_pairs(tokens, top_k, experts, skew);
      double sum = 0;
      for (size_t i = 0; i < pairs.size(); ++i) {
        sum += pairs[i];
        EXPECT_LE(pairs[i], static_cast<double>(tokens));
        if (i > 0) {
          EXPECT_LE(pairs[i], pairs[i - 1] * (1 + 1e-9));
        }
      }
      capped += pairs[0] == static_cast<double>(tokens) ? 1 : 0;
      EXPECT_NEAR(sum, all, 1e-9 * all);
      const ExpertLoad busiest = expert_load(tokens, top_k, experts, ranks, skew);
      const double own = static_cast<double>(experts) / static_cast<double>(ranks);
      EXPECT_GE(busiest.assignments, before * (1 - 1e-9))
          << tokens << " " << top_k << " " << experts << " " << ranks << " " << skew;
      EXPECT_LE(busiest.assignments, std::min(own * static_cast<double>(tokens), all) * (1 + 1e-9));
      const int64_t measured = std::min<int64_t>(skew, 120);
      EXPECT_EQ(busiest.active_experts,
                expert_load(tokens, top_k, experts, ranks, measured).active_experts);
      EXPECT_GT(busiest.active_experts, 0);
      EXPECT_LE(busiest.active_experts, own);
      before = busiest.assignments;
    }
  }
  EXPECT_GT(capped, 100);
}

TEST(Experts, ASmallExponentIsFarFromEven) {
  const std::vector<double> pairs = expert_pairs(32768, 2, 8, 1);
  EXPECT_NEAR(pairs.front() / 8192, 1.88, 0.02);
  EXPECT_NEAR(pairs.back() / 8192, 0.12, 0.02);
}

/// Against placements drawn at random.
TEST(Experts, TheBusiestRankIsThatOfRandomPlacements) {
  Rng rng(7);
  for (const auto& [experts, top_k, ranks] :
       {std::array<int64_t, 3>{64, 6, 8}, {256, 8, 32}, {128, 8, 64}, {8, 2, 4}}) {
    for (const int64_t skew : {1, 60, 101, 120}) {
      std::vector<double> load = expert_pairs(8192, top_k, experts, skew);
      const auto own = static_cast<size_t>(experts / ranks);
      constexpr int kDraws = 400;
      double sum = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        rng.shuffle(load);
        double most = 0;
        for (size_t i = 0; i < load.size(); i += own)
          most = std::max(most, std::accumulate(load.begin() + static_cast<int64_t>(i),
                                                load.begin() + static_cast<int64_t>(i + own), 0.0));
        sum += most;
      }
      EXPECT_NEAR(expert_load(8192, top_k, experts, ranks, skew).assignments / (sum / kDraws), 1,
                  0.35)
          << experts << " " << skew;
    }
  }
}

TEST(Schemes, BytesHoldTheScales) {
  EXPECT_EQ(scheme_bytes(QuantScheme::kNone, 1024, DType::kBf16), 2048);
  EXPECT_EQ(scheme_bytes(QuantScheme::kFp8, 1024, DType::kBf16), 1024);
  EXPECT_EQ(scheme_bytes(QuantScheme::kInt4WeightOnly, 1024, DType::kBf16), 512 + 8 * 20 / 8);
  EXPECT_EQ(scheme_bytes(QuantScheme::kFp4WeightOnly, 1024, DType::kBf16), 512 + 32);
  EXPECT_EQ(compute_dtype(QuantScheme::kInt4WeightOnly, DType::kBf16), DType::kBf16);
  EXPECT_EQ(compute_dtype(QuantScheme::kFp8Block, DType::kBf16), DType::kFp8);
}

TEST(Stream, ReadsAndWritesItsTensorsOnce) {
  const std::vector<Kernel> kernels = lower_first(
      "input x: fp32[8, 16]\nv, i = stream(x) {outputs=\"fp32[8] int64[8]\", flops=128}\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].read_bytes, 8 * 16 * 4);
  EXPECT_EQ(kernels[0].write_bytes, 8 * 4 + 8 * 8);
  EXPECT_EQ(kernels[0].flops, 128);
  EXPECT_EQ(lower_first("input x: fp32[8, 16]\nv = stream(x) {outputs=\"fp32[2]\", "
                        "read_bytes=12}\n")[0]
                .read_bytes,
            12);
}

}  // namespace
}  // namespace tilecast
