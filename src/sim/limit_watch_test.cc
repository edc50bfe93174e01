// Simulations that end when limits are sure to be missed, against those that run to their end.

#include "sim/limit_watch.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "sim/serving.h"

namespace tilecast {
namespace {

double judged_s(const LatencySummary& s, const std::optional<double>& share) {
  return !share ? s.mean_s : *share == 0.5 ? s.median_s : s.p99_s;
}

Fleet random_fleet(Rng& rng) {
  Fleet fleet;
  const auto step = [slope = 1e-4 * rng.uniform()](auto ranks, auto& stage_s) {
    double tokens = 0;
    for (const ServingBatch& b : ranks) {
      tokens += static_cast<double>(b.decoding) * (1 + 1e-3 * b.decode_context);
      for (const PromptChunk& p : b.prompts) tokens += static_cast<double>(p.tokens);
    }
    stage_s.assign(1, 5e-3 + slope * tokens);
  };
  const auto pool = [&] {
    return ServerPool{.servers = 1 + static_cast<int64_t>(rng.below(3)),
                      .limits = {.software = software_of("vllm"),
                                 .max_num_seqs = 4 + static_cast<int64_t>(rng.below(60)),
                                 .cache_blocks = 200 + static_cast<int64_t>(rng.below(800))},
                      .step_s = step};
  };
  fleet.pool = pool();
  if (rng.below(2) == 0) return fleet;
  fleet.prefill = pool();
  fleet.transfer_s = [](int64_t prompt) { return 1e-6 * static_cast<double>(prompt); };
  return fleet;
}

TEST(LimitWatch, StopsOnlyWhatMissesALimitAndChangesNothingElse) {
  Rng rng(11);
  int stopped = 0, ended = 0, late = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Fleet fleet = random_fleet(rng);
    ServingLoad load{.requests =
                         draw_requests({.requests = 20 + static_cast<int64_t>(rng.below(200)),
                                        .prompt_low = 20,
                                        .prompt_high = trial % 2 == 0 ? 20 : 500,
                                        .output_low = 1 + static_cast<int64_t>(rng.below(30)),
                                        .output_high = 30 + static_cast<int64_t>(rng.below(60)),
                                        .seed = rng.next()})};
    load.concurrency = 1 + static_cast<int64_t>(rng.below(60));
    const ServingResult full = simulate_fleet(load, fleet);
    const RequestSummary& part = full.steady ? *full.steady : full.all;
    TimeLimits limits;
    const std::array<std::optional<double>, 3> shares = {std::nullopt, 0.5, 0.99};
    limits.share = shares[static_cast<size_t>(trial) % shares.size()];
    const double ttft_s = judged_s(part.ttft, limits.share),
                 tpot_s = judged_s(part.tpot, limits.share);
    // Near the times themselves, on both sides, and on them.
    const std::array<double, 5> factors = {0.7, 0.99, 1, 1.01, 1.5};
    if (rng.below(4) > 0) limits.ttft_s = ttft_s * factors[rng.below(factors.size())];
    if (rng.below(4) > 0) limits.tpot_s = tpot_s * factors[rng.below(factors.size())];
    const bool misses =
        (limits.ttft_s && ttft_s > *limits.ttft_s) || (limits.tpot_s && tpot_s > *limits.tpot_s);
    load.stop_beyond = limits;
    const ServingResult watched = simulate_fleet(load, fleet);
    if (watched.stopped) {
      EXPECT_TRUE(misses) << trial;
      ++stopped;
      continue;
    }
    ++(misses ? late : ended);
    EXPECT_EQ(watched.all.ttft.p99_s, full.all.ttft.p99_s) << trial;
    EXPECT_EQ(watched.all.output_tokens_per_s, full.all.output_tokens_per_s) << trial;
  }
  EXPECT_GT(stopped, 100);
  EXPECT_GT(ended, 100);
  // Few that miss are only known at the end: the percentile lies between two requests.
  EXPECT_LT(late, 40);
}

TEST(LimitWatch, LeavesOpenLoadsAlone) {
  ServingLoad load{.requests = draw_requests({.requests = 50, .rate = 10})};
  load.stop_beyond = TimeLimits{.ttft_s = 1e-9, .tpot_s = {}, .share = 0.5};
  Fleet fleet;
  fleet.pool = {.limits = {.software = software_of("vllm"), .cache_blocks = 100},
                .step_s = [](auto, auto& stage_s) { stage_s.assign(1, 0.1); }};
  EXPECT_FALSE(simulate_fleet(load, fleet).stopped);
}

}  // namespace
}  // namespace tilecast
