// Servers whose requests have low-rank adapters.

#include "sim/adapter_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/serving.h"
#include "test_support.h"

namespace tilecast {
namespace {

ServerLimits adapter_limits(const char* software, int64_t most) {
  return {.software = software_of(software), .cache_blocks = 1 << 16, .max_adapters = most};
}

RequestSpec with_adapter(double arrival_s, int64_t prompt, int64_t output, int64_t adapter) {
  return {.arrival_s = arrival_s, .prompt = prompt, .output = output, .adapter = adapter};
}

/// Sequences that decode, prompts and different adapters of each step, which takes a second:
/// "1+8 a2".
std::vector<std::string> adapters_of_steps(const ServingLoad& load, ServerLimits limits) {
  limits.longest_jump = 1;
  std::vector<std::string> steps;
  (void)simulate_serving(load, limits, [&](const ServingBatch& batch) {
    std::string text = std::to_string(batch.decoding);
    for (const PromptChunk& p : batch.prompts) text += "+" + std::to_string(p.tokens);
    steps.push_back(text + " a" + std::to_string(batch.adapters));
    return 1.0;
  });
  return steps;
}

using Words = std::vector<std::string>;

TEST(AdapterSlots, TheLeastRecentlyUsedMakesRoom) {
  AdapterSlots slots(2);
  EXPECT_TRUE(slots.use(7));
  EXPECT_TRUE(slots.use(8));
  EXPECT_FALSE(slots.use(7));
  EXPECT_TRUE(slots.use(9)) << "instead of 8";
  EXPECT_FALSE(slots.use(7));
  EXPECT_TRUE(slots.use(8));
}

TEST(Adapters, VllmAndTensorRtLlmPassOverRequestsWithoutAPlace) {
  // The second request's adapter has no place beside the first's; the third has the first's.
  const ServingLoad load{
      .requests = {with_adapter(0, 4, 3, 0), with_adapter(0, 5, 1, 1), with_adapter(0, 6, 1, 0)}};
  for (const char* software : {"vllm", "trtllm"})
    EXPECT_EQ(adapters_of_steps(load, adapter_limits(software, 1)),
              (Words{"0+4+6 a1", "1 a1", "1 a1", "0+5 a1"}));
}

TEST(Adapters, SglangAdmitsNobodyBehindARequestWithoutAPlace) {
  const ServingLoad load{
      .requests = {with_adapter(0, 4, 3, 0), with_adapter(0, 5, 1, 1), with_adapter(0, 6, 1, 0)}};
  EXPECT_EQ(adapters_of_steps(load, adapter_limits("sglang", 1)),
            (Words{"0+4 a1", "1 a1", "1 a1", "0+5 a1", "0+6 a1"}));
}

TEST(Adapters, BatchesHaveAsManyAsThereArePlaces) {
  const ServingLoad load{
      .requests = {with_adapter(0, 4, 2, 0), with_adapter(0, 5, 2, 1), with_adapter(0, 6, 2, 2)}};
  EXPECT_EQ(adapters_of_steps(load, adapter_limits("vllm", 2)),
            (Words{"0+4+5 a2", "2 a2", "0+6 a1", "1 a1"}));
}

TEST(Adapters, AStepWaitsForThoseThatItLacks) {
  ServingLoad load;
  for (int i = 0; i < 4; ++i) load.requests.push_back(with_adapter(100.0 * i, 4, 2, i % 2));
  ServerLimits limits = adapter_limits("vllm", 1);
  limits.adapter_load_s = 10;
  const auto step_s = [](const ServingBatch&) { return 1.0; };
  const ServingResult one = simulate_serving(load, limits, step_s);
  EXPECT_EQ(one.adapter_loads, 4);
  for (const RequestTimes& r : one.requests) EXPECT_DOUBLE_EQ(r.ttft_s(), 11);
  for (const RequestTimes& r : one.requests) EXPECT_DOUBLE_EQ(r.tpot_s(), 1);
  limits.max_adapters = 2;
  const ServingResult two = simulate_serving(load, limits, step_s);
  EXPECT_EQ(two.adapter_loads, 2);
  EXPECT_DOUBLE_EQ(two.requests[0].ttft_s(), 11);
  EXPECT_DOUBLE_EQ(two.requests[2].ttft_s(), 1);
  EXPECT_DOUBLE_EQ(two.mean_adapters, 1);
}

TEST(Adapters, StepsThatAreTakenAtOnceGiveTheSameTimes) {
  for (const char* software : {"vllm", "sglang", "trtllm"}) {
    ServingLoad load{.requests = draw_requests({.requests = 400,
                                                .rate = 0.5,
                                                .prompt_low = 1,
                                                .prompt_high = 40,
                                                .output_low = 1,
                                                .output_high = 60})};
    const std::vector<int64_t> adapters = draw_adapters(load.requests.size(), 6, 0.5);
    for (size_t i = 0; i < adapters.size(); ++i) load.requests[i].adapter = adapters[i];
    ServerLimits limits = adapter_limits(software, 3);
    limits.max_num_seqs = 8;
    limits.adapter_load_s = 0.125;
    const auto step_s = [](const ServingBatch& batch) {
      return (batch.prompts.empty() ? 0.25 : 0.5) + 0.125 * static_cast<double>(batch.adapters);
    };
    const ServingResult jumps = simulate_serving(load, limits, step_s);
    limits.longest_jump = 1;
    const ServingResult steps = simulate_serving(load, limits, step_s);
    EXPECT_EQ(jumps.adapter_loads, steps.adapter_loads) << software;
    EXPECT_LE(jumps.mean_adapters, 3);
    for (size_t i = 0; i < jumps.requests.size(); ++i)
      EXPECT_NEAR(jumps.requests[i].last_s, steps.requests[i].last_s, 1e-9) << software << i;
  }
}

TEST(Adapters, RequestsThatWaitForAPlaceDoNotEndTheSimulation) {
  // Each adapter's requests wait for those of all adapters before it, a step each.
  ServingLoad load;
  for (int64_t i = 0; i < 2000; ++i) load.requests.push_back(with_adapter(0, 4, 20, i % 200));
  const ServingResult result =
      simulate_serving(load, adapter_limits("vllm", 1), [](const ServingBatch&) { return 1.0; });
  EXPECT_EQ(result.adapter_loads, 200);
  EXPECT_EQ(result.requests.size(), 2000U);
}

TEST(Adapters, AreDrawnEvenlyOrByAPowerLaw) {
  constexpr size_t kRequests = 40'000;
  const auto shares = [](double skew) {
    std::vector<double> counts(4);
    for (const int64_t a : draw_adapters(kRequests, 4, skew))
      counts.at(static_cast<size_t>(a)) += 1.0 / kRequests;
    return counts;
  };
  // Five standard deviations of a share.
  constexpr double kNear = 5 * 0.5 / 200;
  for (const double share : shares(0)) EXPECT_NEAR(share, 0.25, kNear);
  const std::vector<double> skewed = shares(1);
  constexpr double kSum = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  for (size_t i = 0; i < skewed.size(); ++i)
    EXPECT_NEAR(skewed[i], 1 / kSum / static_cast<double>(i + 1), kNear);
}

}  // namespace
}  // namespace tilecast
