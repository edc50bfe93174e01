#include "sim/token_gaps.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "sim/serving.h"
#include "software/software.h"

namespace tilecast {
namespace {

constexpr double kHalfABin = 0.003;  // of a value: bins are 0.5 % wide

/// 10 ms, and 10 ms more with prompts.
double step_with_prompts(const ServingBatch& batch) { return batch.prompts.empty() ? 0.01 : 0.02; }

ServerLimits gap_limits(const char* software) {
  ServerLimits limits{.software = software_of(software)};
  limits.cache_blocks = 100000;
  limits.block_tokens = default_block_tokens(limits.software);
  return limits;
}

TEST(TokenGaps, AreSummedExactlyAndRankedToHalfAPercent) {
  TokenGaps gaps;
  EXPECT_EQ(gaps.summary().mean_s, 0);
  gaps.add(0.01, 98);
  gaps.add(0.03, 0);
  TokenGaps other;
  other.add(0.5, 2);
  gaps.add(other);
  EXPECT_EQ(gaps.tokens(), 100);
  const LatencySummary s = gaps.summary();
  EXPECT_NEAR(s.mean_s, (0.98 + 1) / 100, 1e-12);
  EXPECT_NEAR(s.median_s, 0.01, 0.01 * kHalfABin);
  EXPECT_NEAR(s.p99_s, 0.5, 0.5 * kHalfABin);
}

// A second prompt comes while the first request decodes: vLLM computes it in a step with the
// decodes, SGLang in a step before them.
TEST(TokenGaps, PromptsLengthenTheGapsOfThoseThatDecode) {
  const ServingLoad load{.requests = {{0, 10, 100}, {0.505, 10, 2}}};
  const auto itl = [&](const char* software) {
    return simulate_serving(load, gap_limits(software), step_with_prompts).itl;
  };
  EXPECT_NEAR(itl("vllm").mean_s, (99 * 0.01 + 0.02) / 100, 1e-12);
  EXPECT_NEAR(itl("sglang").mean_s, (99 * 0.01 + 0.03) / 100, 1e-12);
  EXPECT_NEAR(itl("sglang").median_s, 0.01, 0.01 * kHalfABin);
}

// Whatever the scheduler does, the gaps of a request add up to the time from its first token to its
// last.
TEST(TokenGaps, AddUpToTheTimesOfRequests) {
  const std::vector<RequestSpec> requests = draw_requests(
      {.requests = 200, .prompt_low = 1, .prompt_high = 500, .output_low = 1, .output_high = 60});
  for (const char* software : {"vllm", "sglang", "trtllm"}) {
    for (const int64_t pp : {1, 2}) {
      ServerLimits limits = gap_limits(software);
      limits.pp = pp;
      const ServingResult r =
          simulate_serving({.requests = requests, .concurrency = 16}, limits, step_with_prompts);
      double seconds = 0, tokens = 0;
      for (const RequestTimes& t : r.requests) {
        seconds += t.last_s - t.first_s;
        tokens += static_cast<double>(t.output - 1);
      }
      EXPECT_NEAR(r.itl.mean_s * tokens, seconds, 1e-6 * seconds) << software << ", pp " << pp;
    }
  }
}

// A server idles for ten seconds before a cache comes from a prefill worker: nobody waited for it.
TEST(TokenGaps, OfACacheThatMovedBeginAtItsFirstToken) {
  const ServingLoad load{.requests = {{0, 10, 3}, {10, 10, 3}}};
  const ServerLimits limits = gap_limits("vllm");
  const auto step_s = [](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    stage_s.push_back(step_with_prompts(ranks.front()));
  };
  const ServingResult r =
      simulate_fleet(load, {.pool = {.limits = limits, .step_s = step_s},
                            .prefill = ServerPool{.limits = limits, .step_s = step_s},
                            .transfer_s = [](int64_t) { return 0.1; }});
  EXPECT_NEAR(r.itl.mean_s, (0.11 + 0.01) / 2, 1e-9);
}

}  // namespace
}  // namespace tilecast
