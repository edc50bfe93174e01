#include "tilecast/llm.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "test_support.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

const Forecaster& forecaster() {
  static const Forecaster instance;
  return instance;
}

LlmForecast forecast(const std::string& model, const std::string& gpu, const LlmOptions& options) {
  return forecast_llm(forecaster(), load_model_ref(model), load_gpu_ref(gpu), options);
}

/// Parameters as the model cards or the checkpoints' indices state them.
TEST(Llm, ParametersAreThoseOfTheModelCards) {
  const std::pair<const char*, int64_t> cards[] = {
      {"llama-3-8b", 8030261248},   {"llama-3.1-70b", 70553706496}, {"mixtral-8x7b", 46702792704},
      {"qwen3-32b", 32762123264},   {"gemma-2-9b", 9241705984},     {"gemma-3-1b", 999885952},
      {"phi-3-mini", 3821079552},   {"falcon-7b", 6921720704},      {"gpt-oss-20b", 20914757184},
      {"deepseek-v3", 671026419200}};
  for (const auto& [model, parameters] : cards) {
    const LlmForecast f = forecast(model, "B200", {.prompt = 128, .output = 8, .tp = 1});
    EXPECT_EQ(f.parameters, parameters) << model;
  }
}

TEST(Llm, ATokensFlopsAreTwoForEachMultipliedParameter) {
  for (const char* model : {"llama-3-8b", "qwen3-32b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b",
                            "gemma-2-9b", "falcon-7b", "phi-4", "glm-4-9b"}) {
    const LlmForecast f = forecast(model, "B200", {.prompt = 1024, .output = 8});
    const auto expected = 2.0 * static_cast<double>(f.multiplied_parameters);
    EXPECT_NEAR(static_cast<double>(f.flops_per_token - f.attention_flops_per_token) / expected, 1,
                0.01)
        << model;
  }
}

TEST(Llm, CacheBytesOfATokenAreKnown) {
  // Layers x 2 x key heads x head size x 2 bytes; DeepSeek: layers x (512 + 64) x 2 bytes.
  EXPECT_EQ(forecast("llama-3-8b", "H100", {}).kv_bytes_per_token, 32 * 2 * 8 * 128 * 2);
  EXPECT_EQ(forecast("qwen3-32b", "H200", {}).kv_bytes_per_token, 64 * 2 * 8 * 128 * 2);
  EXPECT_EQ(forecast("deepseek-v3", "B200", {.tp = 8}).kv_bytes_per_token, 61 * 576 * 2);
  EXPECT_EQ(forecast("llama-3-8b", "H100", {.kv_dtype = "fp8"}).kv_bytes_per_token,
            32 * 2 * 8 * 128);
}

TEST(Llm, FewerBitsMoreRanksAndShorterContextsAreFaster) {
  const LlmOptions base{.prompt = 2048, .output = 128, .batch = 16};
  const LlmForecast plain = forecast("llama-3-8b", "H100", base);
  const auto with = [&](auto change) {
    LlmOptions options = base;
    change(options);
    return forecast("llama-3-8b", "H100", options);
  };
  EXPECT_LT(with([](LlmOptions& o) { o.dtype = "fp8"; }).per_token.seconds,
            plain.per_token.seconds);
  EXPECT_LT(with([](LlmOptions& o) { o.tp = 2; }).per_token.seconds, plain.per_token.seconds);
  EXPECT_LT(with([](LlmOptions& o) { o.prompt = 128; }).first_token.seconds,
            0.2 * plain.first_token.seconds);
  EXPECT_GT(with([](LlmOptions& o) { o.cuda_graphs = false; }).per_token.seconds,
            0.999 * plain.per_token.seconds);
  EXPECT_LT(plain.course.front().second.seconds, plain.course.back().second.seconds);
}

TEST(Llm, TheLargestBatchFitsAndTheNextDoesNot) {
  const LlmForecast f = forecast("llama-3-8b", "L40S", {.prompt = 4096, .output = 512});
  ASSERT_GT(f.largest_batch, 1);
  EXPECT_NO_THROW(
      forecast("llama-3-8b", "L40S", {.prompt = 4096, .output = 512, .batch = f.largest_batch}));
  EXPECT_ERROR(
      forecast("llama-3-8b", "L40S", {.prompt = 4096, .output = 512, .batch = f.largest_batch + 1}),
      kInput, "the largest batch that fits is " + std::to_string(f.largest_batch));
}

TEST(Llm, AWindowCapsTheCache) {
  const LlmForecast near = forecast("gemma-3-1b", "L40S", {.prompt = 512, .output = 8});
  const LlmForecast far = forecast("gemma-3-1b", "L40S", {.prompt = 16384, .output = 8});
  EXPECT_LT(far.cache_bytes, 10 * near.cache_bytes);
}

TEST(Llm, UnknownWordsAndSizesAreRefusedInTheLibraryToo) {
  const auto with = [](auto set) {
    LlmOptions options;
    set(options);
    return forecast("llama-3-8b", "H100", options);
  };
  EXPECT_ERROR(with([](auto& o) { o.software = "vlm"; }), kInput,
               "--software: unknown value 'vlm'; did you mean 'vllm'?");
  EXPECT_ERROR(with([](auto& o) { o.predictor = "foo"; }), kInput, "--predictor: unknown value");
  EXPECT_ERROR(with([](auto& o) { o.kv_dtype = "fp5"; }), kInput, "--kv-dtype: unknown dtype");
  EXPECT_ERROR(with([](auto& o) { o.prompt = 0; }), kInput, "--prompt: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.output = -1; }), kInput, "--output: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.batch = 0; }), kInput, "--batch: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.tp = 0; }), kInput, "--tp: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.chunk = 0; }), kInput, "--chunk: expected a whole number");
  EXPECT_ERROR(with([](auto& o) { o.memory_share = 2; }), kInput, "--memory-share: expected");
  EXPECT_ERROR(with([](auto& o) { o.skew_percent = -1; }), kInput, "--skew: expected a number");
  EXPECT_ERROR(with([](auto& o) { o.rate = -1; }), kInput, "--rate: expected a number");
  EXPECT_ERROR(with([](auto& o) { o.concurrency = -1; }), kInput, "--concurrency: expected");
}

TEST(Llm, BadRequestsSayWhatToDo) {
  EXPECT_ERROR(forecast("llama-3-8b", "H100", {.prompt = 8000, .output = 1000}), kInput,
               "longer than the model's 8192 positions; shorten them by 808");
  EXPECT_ERROR(forecast("llama-3-8b", "H100", {.tp = 3}), kInput,
               "--tp 3 does not divide the 32 attention heads");
  EXPECT_ERROR(forecast("llama-3-8b", "A100", {.dtype = "fp8"}), kUnsupported,
               "no unit that multiplies fp8 matrices");
  EXPECT_ERROR(forecast("llama-3-8b", "H100", {.dtype = "fp4"}), kUnsupported,
               "no unit that multiplies fp4 matrices");
  EXPECT_ERROR(forecast("llama-3-8b", "H100", {.dtype = "fp7"}), kInput, "unknown value 'fp7'");
  EXPECT_ERROR(forecast("llama-3-8b", "H100", {.kv_dtype = "fp32"}), kInput,
               "a cache in fp32 is not known");
  EXPECT_ERROR(forecast("bert_large", "H100", {}), kUnsupported, "is not forecast token by token");
}

TEST(Llm, WhatIsStoredInFourBitsRunsEverywhere) {
  const LlmForecast f = forecast("llama-3-8b", "A100", {.dtype = "int4_wo"});
  EXPECT_LT(f.weights_bytes, forecast("llama-3-8b", "A100", {}).weights_bytes / 2);
  EXPECT_TRUE(std::any_of(f.decode.kernels.begin(), f.decode.kernels.end(),
                          [](const KernelForecast& k) { return k.extrapolated; }));
}

TEST(Llm, AServerUnderMoreLoadAnswersLater) {
  LlmOptions options{.prompt = 1024, .output = 128, .continuous = true};
  options.rate = 1;
  const LlmForecast calm = forecast("llama-3-8b", "H100", options);
  options.rate = 15;
  const LlmForecast busy = forecast("llama-3-8b", "H100", options);
  ASSERT_TRUE(calm.serving && busy.serving);
  EXPECT_LT(calm.serving->per_token_median.seconds, busy.serving->per_token_median.seconds);
  EXPECT_LT(calm.serving->mean_batch, busy.serving->mean_batch);
  EXPECT_NEAR(calm.serving->requests_per_s, 1, 0.15);
  options.rate = 1000;
  const LlmForecast flooded = forecast("llama-3-8b", "H100", options);
  EXPECT_FALSE(flooded.serving->keeps_up);
  EXPECT_FALSE(flooded.warnings.empty());
}

TEST(Llm, JsonHoldsWhatTheTableSays) {
  const LlmForecast f = forecast("mixtral-8x7b", "H100", {.batch = 4, .tp = 2});
  const Json json = Json::parse(llm_json(f));
  EXPECT_EQ(json.at("time_to_first_token").at("seconds").get<double>(), f.first_token.seconds);
  EXPECT_EQ(json.at("memory").at("largest_batch").get<int64_t>(), f.largest_batch);
  EXPECT_FALSE(json.at("decode").at("kernels").empty());
  EXPECT_NE(llm_table(f).find("time per output token"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
