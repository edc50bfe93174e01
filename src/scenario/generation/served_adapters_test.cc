// Servers whose requests have low-rank adapters: time, memory, options.

#include "scenario/generation/served_adapters.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "scenario/generation/step_costs.h"
#include "test_support.h"
#include "text_requests.h"

namespace tilecast {
namespace {

Request adapted_batch(int64_t rank, int64_t adapters = 1, int64_t batch = 8) {
  Request request{.kind = RequestKind::kGenerate, .batch = batch, .prompt = 256, .output = 32};
  request.lora_rank = rank;
  if (rank > 0) request.adapters = {.count = adapters, .max_loras = 8};
  return request;
}

GenerationForecast on_h100(const Request& request) {
  return forecast_text("llama-3-8b", "H100", request);
}

// q 4096 + 4096, k and v 4096 + 1024 each, o 4096 + 4096, gate, up and down 4096 + 14336 each.
constexpr int64_t kElementsPerRank = 32 * (2 * 8192 + 2 * 5120 + 3 * 18432);

TEST(ServerAdapters, KeepMemoryForTheMostOfTheLargestRank) {
  const Request request = adapted_batch(16, 4);
  const GenerationForecast f = on_h100(request);
  ASSERT_TRUE(f.adapters && f.pool);
  EXPECT_EQ(f.adapters->bytes, 2 * 16 * kElementsPerRank);
  EXPECT_EQ(f.adapters->reserved_bytes, 8 * 2 * 16 * kElementsPerRank);
  const GenerationForecast none = on_h100(adapted_batch(0));
  EXPECT_FALSE(none.adapters);
  EXPECT_EQ(f.pool->weights_bytes - none.pool->weights_bytes, f.adapters->reserved_bytes);
  EXPECT_LT(f.pool->tokens, none.pool->tokens);
  EXPECT_EQ(f.parameters, none.parameters);
  Request larger = request;
  larger.adapters.max_lora_rank = 64;
  EXPECT_EQ(on_h100(larger).adapters->reserved_bytes, 4 * f.adapters->reserved_bytes);
  EXPECT_EQ(on_h100(larger).adapters->bytes, f.adapters->bytes);
}

TEST(ServerAdapters, TakeTimeThatGrowsWithTheirNumber) {
  const double none = on_h100(adapted_batch(0)).tpot.value,
               one = on_h100(adapted_batch(16, 1)).tpot.value,
               eight = on_h100(adapted_batch(16, 8)).tpot.value;
  // Four calls a layer of three kernels each, of a few microseconds.
  EXPECT_GT(one - none, 32 * 4 * 3 * 1e-6);
  EXPECT_LT(one - none, 32 * 4 * 3 * 10e-6);
  EXPECT_GT(eight, one);
  EXPECT_GT(on_h100(adapted_batch(64, 8)).tpot.value, eight);
  Request same = adapted_batch(16, 8, 1);
  EXPECT_EQ(on_h100(same).tpot.value, on_h100(adapted_batch(16, 1, 1)).tpot.value)
      << "one sequence has one adapter";
}

TEST(ServerAdapters, VllmComputesTheRankThatIsKeptAtAllLayers) {
  Request request = adapted_batch(8, 8, 64);
  request.adapters.max_lora_rank = 128;
  request.lora_targets = "q_proj";
  const auto tpot = [&](const char* software) {
    request.execution.software = software_of(software);
    const double narrow = on_h100(request).tpot.value;
    Request wide = request;
    wide.lora_rank = 128;
    wide.lora_targets = "all-linear";
    return std::pair(narrow, on_h100(wide).tpot.value);
  };
  const auto [vllm_narrow, vllm_wide] = tpot("vllm");
  EXPECT_EQ(vllm_narrow, vllm_wide);
  const auto [sglang_narrow, sglang_wide] = tpot("sglang");
  EXPECT_LT(sglang_narrow, sglang_wide);
}

TEST(ServerAdapters, AStepCostsWhatItsGraphCosts) {
  Request request = adapted_batch(16, 8);
  request.execution.software = software_of("vllm");
  request.execution.host_launch_s = 0;
  const ModelRef model = load_model_ref("llama-3-8b");
  const GpuRef gpu = load_gpu_ref("H100");
  const ServedModel served(forecaster(), model, gpu, request);
  KnownTimes known;
  StepCosts costs(served, 0, {}, known);
  const ServingBatch batch{.decoding = 8, .decode_context = 256, .prompts = {}, .adapters = 8};
  const double whole =
      time_step(served, {{8, 1, 256}}, StepLaunch::kCudaGraph).totals.seconds.value;
  EXPECT_NEAR(costs.seconds(std::span(&batch, 1)) / whole, 1, 0.01);
}

TEST(ServerAdapters, RequestsWaitForAdaptersFromTheHost) {
  Request request{.kind = RequestKind::kServe, .prompt = 256, .output = 16};
  request.load.rate = 0.01;
  request.load.requests = 40;
  request.lora_rank = 16;
  request.adapters = {.count = 40, .max_loras = 1};
  const GenerationForecast many = on_h100(request);
  request.adapters = {.count = 1, .max_loras = 1};
  const GenerationForecast one = on_h100(request);
  ASSERT_TRUE(many.serving && one.serving);
  EXPECT_EQ(one.serving->adapter_loads, 1);
  EXPECT_GT(many.serving->adapter_loads.value_or(0), 20);
  EXPECT_NEAR(many.serving->all.ttft.median.value - one.serving->all.ttft.median.value,
              one.adapters->load_s, 1e-9);
  // PCIe 5.0's 64 GB/s, and 448 copies of 50 us.
  EXPECT_NEAR(one.adapters->load_s, 448 * 50e-6, 1e-9);
}

TEST(ServerAdapters, DraftsHaveNone) {
  Request request = adapted_batch(16, 4);
  request.deployment.speculation = {.tokens = 3, .draft_model = "llama-3.2-1b"};
  const GenerationForecast with = on_h100(request);
  request.lora_rank = 0;
  request.adapters = {};
  const GenerationForecast without = on_h100(request);
  EXPECT_EQ(with.drafts->weights_bytes, without.drafts->weights_bytes);
  EXPECT_EQ(with.drafts->time.value, without.drafts->time.value);
}

TEST(ServerAdapters, WhatDoesNotFitIsRefused) {
  Request request = adapted_batch(16);
  request.adapters.max_lora_rank = 8;
  EXPECT_ERROR(on_h100(request), kInput, "`max-lora-rank` 8 is less than `lora-rank` 16");
  request = adapted_batch(16);
  request.lora_targets = "query";
  EXPECT_ERROR(on_h100(request), kInput, "no linear layer 'query'");
  request = adapted_batch(16);
  request.execution.software = Software{};
  EXPECT_ERROR(on_h100(request), kInput, "PyTorch serves no adapters");
  request = adapted_batch(0);
  request.adapters.count = 4;
  EXPECT_ERROR(on_h100(request), kInput, "no effect without `lora-rank`");
}

}  // namespace
}  // namespace tilecast
