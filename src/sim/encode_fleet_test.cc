// Servers whose prompts have images: towers beside the layers, and encode workers.

#include <gtest/gtest.h>

#include "sim/serving.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr int64_t kImageTokens = 200;

double encode_s(int64_t images) { return 4e-3 + 6e-3 * static_cast<double>(images); }

/// 5 ms a step, 20 us a token, and the tower.
double step_s(const ServingBatch& batch) {
  double tokens = static_cast<double>(batch.decoding);
  for (const PromptChunk& p : batch.prompts) tokens += static_cast<double>(p.tokens);
  return 5e-3 + 2e-5 * tokens + (batch.images > 0 ? encode_s(batch.images) : 0);
}

ServingLoad image_load(double rate, int64_t images, int64_t requests = 400) {
  ServingLoad load{.requests = draw_requests({.requests = requests,
                                              .rate = rate,
                                              .prompt_low = 50,
                                              .prompt_high = 300,
                                              .output_low = 2,
                                              .output_high = 40})};
  load.image_tokens = kImageTokens;
  for (RequestSpec& r : load.requests) {
    r.images = images;
    r.prompt += images * kImageTokens;
  }
  return load;
}

Fleet fleet_of(int64_t encode_workers) {
  Fleet fleet;
  fleet.pool.limits = {.software = software_of("vllm"), .cache_blocks = 1 << 14};
  fleet.pool.step_s = [](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    stage_s.assign(1, step_s(ranks.front()));
  };
  if (encode_workers > 0)
    fleet.encoders = {
        .workers = encode_workers,
        .together = 8,
        .encode_s = encode_s,
        .transfer_s = [](int64_t images) { return 1e-3 * static_cast<double>(images); }};
  return fleet;
}

TEST(EncodeFleet, StepsHaveTheImagesOfTheirPrompts) {
  ServingLoad load = image_load(1e-3, 3, 2);
  for (RequestSpec& r : load.requests) r.prompt = 3 * kImageTokens + 100;
  Fleet fleet = fleet_of(0);
  fleet.pool.limits.max_num_batched_tokens = 450;
  std::vector<int64_t> images, tokens;
  fleet.pool.step_s = [&](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    stage_s.assign(1, 0.01);
    if (ranks.front().prompts.empty()) return;
    images.push_back(ranks.front().images);
    tokens.push_back(ranks.front().prompts.front().tokens);
  };
  (void)simulate_fleet(load, fleet);
  // 450 tokens hold two images. There is no room for a third before the next step.
  EXPECT_EQ(images, (std::vector<int64_t>{2, 1, 2, 1}));
  EXPECT_EQ(tokens, (std::vector<int64_t>{400, 300, 400, 300}));
  // Of a prompt whose first half is in the cache, what that has whole is not encoded.
  images.clear();
  fleet.pool.limits.prefix_hit_rate = 0.5;  // 350 tokens, 336 in blocks
  (void)simulate_fleet(load, fleet);
  EXPECT_EQ(images, (std::vector<int64_t>{2, 2}));
  // Encode workers have a budget of their own.
  tokens.clear();
  fleet.pool.limits.prefix_hit_rate = 0;
  fleet.encoders = fleet_of(1).encoders;
  (void)simulate_fleet(load, fleet);
  EXPECT_EQ(tokens, (std::vector<int64_t>{450, 250, 450, 250}));
}

TEST(EncodeFleet, AnImageThatIsLargerThanAStepIsEncodedOnce) {
  ServingLoad load = image_load(1e3, 2, 3);
  for (RequestSpec& r : load.requests) r.prompt = 2 * kImageTokens + 10;
  Fleet fleet = fleet_of(0);
  fleet.pool.limits.max_num_batched_tokens = 150;
  int64_t images = 0;
  fleet.pool.step_s = [&](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    stage_s.assign(1, 0.01);
    images += ranks.front().images;
    EXPECT_LE(ranks.front().images, 1);
  };
  EXPECT_EQ(simulate_fleet(load, fleet).all.requests, 3);
  EXPECT_EQ(images, 6);
}

TEST(EncodeFleet, ImagesOfEarlierTurnsAreEncodedAgainWhereTheCacheHasLostThem) {
  // Two turns, an image each: 300 tokens, then 100 of the answer and 300 more.
  ServingLoad load;
  load.image_tokens = kImageTokens;
  load.parts = {{1, 300, 1}, {1, 300, 1}, {2, 100}, {3, 300, 1}};
  load.requests = {{.prompt = 300,
                    .output = 100,
                    .session = 0,
                    .next = 1,
                    .part_count = 1,
                    .output_key = 2,
                    .images = 1},
                   {.prompt = 700,
                    .output = 5,
                    .session = 0,
                    .follows = true,
                    .think_s = 1,
                    .first_part = 1,
                    .part_count = 3,
                    .images = 1}};
  const auto images_of = [&](bool caches) {
    Fleet fleet = fleet_of(0);
    fleet.pool.limits.prefix_caching = caches;
    int64_t images = 0;
    fleet.pool.step_s = [&](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
      images += ranks.front().images;
      stage_s.assign(1, 0.01);
    };
    (void)simulate_fleet(load, fleet);
    return images;
  };
  EXPECT_EQ(images_of(true), 2);
  EXPECT_EQ(images_of(false), 3);
}

TEST(EncodeFleet, AnyLoadEncodesAllItsImages) {
  for (const char* software : {"vllm", "sglang", "trtllm"}) {
    for (const int64_t budget : {150, 999, 4000}) {
      if (software != std::string_view("vllm") && budget < 4000) continue;
      const ServingLoad load = image_load(30, 3, 200);
      Fleet fleet = fleet_of(0);
      const Software id = software_of(software);
      // Room for about ten requests: some are preempted.
      fleet.pool.limits = {.software = id,
                           .max_num_batched_tokens = budget,
                           .cache_blocks = 8000 / default_block_tokens(id),
                           .block_tokens = default_block_tokens(id)};
      int64_t images = 0;
      fleet.pool.step_s = [&](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
        images += ranks.front().images;
        stage_s.assign(1, step_s(ranks.front()));
      };
      const ServingResult r = simulate_fleet(load, fleet);
      EXPECT_EQ(r.all.requests, 200);
      EXPECT_GE(images, 3 * 200) << software << " " << budget;
      EXPECT_LE(images, 3 * (200 + r.preemptions)) << software << " " << budget;
    }
  }
}

TEST(EncodeFleet, WithoutImagesEncodersChangeNothing) {
  const ServingLoad load = image_load(20, 0);
  const ServingResult with = simulate_fleet(load, fleet_of(2)),
                      without = simulate_fleet(load, fleet_of(0));
  for (size_t i = 0; i < with.requests.size(); ++i) {
    EXPECT_EQ(with.requests[i].first_s, without.requests[i].first_s);
    EXPECT_EQ(with.requests[i].last_s, without.requests[i].last_s);
  }
  EXPECT_EQ(with.encode->busy_share, 0);
  EXPECT_FALSE(without.encode);
}

TEST(EncodeFleet, ARequestWaitsForItsImagesThenForItsPrompt) {
  for (const int64_t workers : {1, 3, 8}) {
    const ServingLoad load = image_load(12, 5);
    const ServingResult r = simulate_fleet(load, fleet_of(workers));
    const int64_t most = (5 + workers - 1) / workers;
    double ttft = 0, prefill = 0;
    for (size_t i = 0; i < r.requests.size(); ++i) {
      const double alone = encode_s(most) + 1e-3 * static_cast<double>(most) +
                           step_s({.prompts = {{.tokens = load.requests[i].prompt, .past = 0}}});
      EXPECT_GE(r.requests[i].ttft_s(), alone - 1e-9) << workers << " workers, request " << i;
      ttft += r.requests[i].ttft_s();
      prefill += alone - encode_s(most) - 1e-3 * static_cast<double>(most);
    }
    const auto count = static_cast<double>(r.requests.size());
    EXPECT_GE(ttft / count, r.encode->mean_s + prefill / count - 1e-9);
    EXPECT_GE(r.encode->mean_s, encode_s(most));
  }
}

TEST(EncodeFleet, MoreEncodersAreNeverSlower) {
  for (const double rate : {2.0, 10.0, 25.0}) {
    const ServingLoad load = image_load(rate, 4);
    double before = 1e9;
    for (const int64_t workers : {1, 2, 3, 4, 6, 8, 16}) {
      const ServingResult r = simulate_fleet(load, fleet_of(workers));
      EXPECT_EQ(r.all.requests, 400);
      // Noise: other arrivals at the servers make other steps.
      EXPECT_LT(r.all.ttft.mean_s, 1.01 * before) << rate << " " << workers;
      before = r.all.ttft.mean_s;
    }
  }
}

TEST(EncodeFleet, TooFewEncodersDoNotKeepUp) {
  // 25 requests of four images a second need 25 runs of 28 ms at best.
  const ServingLoad load = image_load(25, 4, 1500);
  EXPECT_TRUE(simulate_fleet(load, fleet_of(2)).keeps_up);
  const Fleet slow = [] {
    Fleet fleet = fleet_of(1);
    fleet.encoders->encode_s = [](int64_t images) { return 0.02 * static_cast<double>(images); };
    return fleet;
  }();
  const ServingResult r = simulate_fleet(load, slow);
  EXPECT_FALSE(r.keeps_up);
  EXPECT_GT(r.encode->busy_share, 0.98);
  EXPECT_GT(r.encode->mean_images, 7);
}

TEST(EncodeFleet, PrefillWorkersGetTheImages) {
  const ServingLoad load = image_load(10, 2);
  Fleet fleet = fleet_of(2);
  fleet.prefill = fleet.pool;
  fleet.transfer_s = [](int64_t) { return 2e-3; };
  int64_t images = 0;
  for (ServerPool* pool : {&fleet.pool, &*fleet.prefill})
    pool->step_s = [&](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
      images += ranks.front().images;
      stage_s.assign(1, step_s(ranks.front()));
    };
  const ServingResult r = simulate_fleet(load, fleet);
  EXPECT_EQ(images, 0) << "the encode workers have the tower";
  for (const RequestTimes& times : r.requests) EXPECT_GT(times.ttft_s(), encode_s(1) + 1e-3);
}

}  // namespace
}  // namespace tilecast
