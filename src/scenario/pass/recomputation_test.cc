#include <gtest/gtest.h>

#include <string>

#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "training_steps.h"

namespace tilecast {
namespace {

constexpr double kTokens = 1024;

Request recomputing(const char* modules) {
  Request request = training(1);
  request.execution.software = software_of("megatron");
  request.execution.dtype = "bf16";
  request.execution.attention = AttentionKind::kFlash;
  if (*modules != '\0') {
    request.checkpointing = Checkpointing::kSelective;
    request.recompute_modules = modules;
  }
  return request;
}

TEST(Recomputation, AnMlpRunsAgainWhole) {
  const Forecast kept = forecast(recomputing(""), "llama-3.2-1b");
  const Forecast again = forecast(recomputing("mlp"), "llama-3.2-1b");
  constexpr double kMlp = 16 * 2.0 * 3 * 2048 * 8192 * kTokens;
  EXPECT_NEAR(static_cast<double>(again.flops - kept.flops) / kMlp, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(again.model_flops) / static_cast<double>(kept.model_flops), 1,
              1e-3);
  EXPECT_LT(again.memory.activations_bytes,
            0.6 * static_cast<double>(kept.memory.activations_bytes));
}

TEST(Recomputation, ALayerOfExpertsRunsAgainWithItsRouterAndSharedExperts) {
  const Forecast kept = forecast(recomputing(""), "deepseek-v2-lite");
  const Forecast again = forecast(recomputing("moe"), "deepseek-v2-lite");
  // 26 layers: six experts and two shared ones of 1,408, and the router's 64 numbers.
  constexpr double kExperts = 26 * 2.0 * 2048 * (3 * 8 * 1408 + 64) * kTokens;
  // Tiles of few rows are half empty.
  EXPECT_NEAR(static_cast<double>(again.flops - kept.flops) / kExperts, 1, 0.02);
  EXPECT_LT(again.memory.activations_bytes, kept.memory.activations_bytes);
  // Its first layer alone is dense.
  const Forecast dense = forecast(recomputing("mlp"), "deepseek-v2-lite");
  constexpr double kDense = 2.0 * 3 * 2048 * 10944 * kTokens;
  EXPECT_NEAR(static_cast<double>(dense.flops - kept.flops) / kDense, 1, 0.01);
}

TEST(Recomputation, ModulesThatAModelDoesNotHaveAreRefused) {
  EXPECT_THROW(forecast(recomputing("moe"), "llama-3.2-1b"), Error);
  EXPECT_THROW(forecast(recomputing("mlp"), "qwen3-30b-a3b"), Error);
  EXPECT_THROW(forecast(recomputing("mlps"), "llama-3.2-1b"), Error);
}

double attention_flops(const Forecast& f) {
  double flops = 0;
  for (const KernelForecast& k : f.kernels) {
    if (k.op == "attention" || k.op == "attention_backward")
      flops += static_cast<double>(k.flops * k.count);
  }
  return flops;
}

TEST(PackedSequences, AttentionIsWithinEachOfThem) {
  Request request = recomputing("");
  const Forecast whole = forecast(request, "llama-3.2-1b");
  request.packed_length = 128;
  const Forecast packed = forecast(request, "llama-3.2-1b");
  // Causal: n (n + 1) / 2 pairs of n tokens, of eight sequences instead of one.
  EXPECT_NEAR(attention_flops(packed) / attention_flops(whole), 8.0 * 128 * 129 / (1024.0 * 1025),
              1e-9);
  EXPECT_LT(packed.latency_s, whole.latency_s);
  EXPECT_EQ(packed.memory.peak_bytes, whole.memory.peak_bytes);
  request.packed_length = 1024;
  EXPECT_EQ(forecast(request, "llama-3.2-1b").latency_s, whole.latency_s);
}

TEST(PackedSequences, NeedFusedAttentionAndRowsThatHoldThem) {
  Request request = recomputing("");
  request.packed_length = 2048;
  EXPECT_ERROR(forecast(request, "llama-3.2-1b"), kInput, "is longer than the row of `seq` 1024");
  request.seq.reset();  // the model's default, 2048
  request.packed_length = 100000;
  EXPECT_ERROR(forecast(request, "llama-3.2-1b"), kInput, "does not divide the row of 2048 tokens");
  request.seq = 2048;
  request.packed_length = 2047;
  EXPECT_ERROR(forecast(request, "llama-3.2-1b"), kInput, "does not divide the row of 2048 tokens");
  request.seq = 1024;
  request.packed_length = 128;
  request.execution.attention = AttentionKind::kEager;
  EXPECT_ERROR(forecast(request, "llama-3.2-1b"), kUnsupported, "use `attention` flash");
  request.execution.attention = AttentionKind::kFlash;
  request.parallel.cp = 2;
  EXPECT_ERROR(forecast(request, "llama-3.2-1b"), kUnsupported, "leave one of them out");
}

}  // namespace
}  // namespace tilecast
