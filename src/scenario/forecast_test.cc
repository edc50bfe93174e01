// Forecasts of one pass through the public header.

#include "tilecast/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "passes.h"
#include "schema/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

TEST(ForecastTest, UnknownWordsAndSizesAreRefusedInTheLibraryToo) {
  const auto with = [](auto set) {
    Request request;
    set(request);
    return forecast("gpt2_large", "V100", request);
  };
  EXPECT_ERROR(with([](auto& r) { r.execution.dtype = "fp33"; }), kInput,
               "`dtype`: unknown value 'fp33'");
  EXPECT_ERROR(with([](auto& r) { r.execution.dtype = "\x1b[2J"; }), kInput, "'\\x1b[2J'");
  EXPECT_ERROR(with([](auto& r) { r.batch = 0; }), kInput, "`batch`: expected a whole number");
  EXPECT_ERROR(with([](auto& r) { r.seq = -1; }), kInput, "`seq`: expected a whole number");
  EXPECT_ERROR(with([](auto& r) { r.execution.dp = 0; }), kInput, "`dp`: expected a whole number");
  EXPECT_ERROR(with([](auto& r) { r.execution.host_launch_s = -1; }), kInput,
               "`host-launch-us`: expected");
  EXPECT_ERROR(with([](auto& r) { r.execution.host_launch_s = NAN; }), kInput,
               "`host-launch-us`: expected");
  EXPECT_ERROR(
      forecaster().largest_batch(load_model_ref("gpt2_large"), load_gpu_ref("V100"), {.batch = -1}),
      kInput, "`batch`: expected");
}

TEST(ForecastTest, RequestsOfAnotherKindAreRefused) {
  EXPECT_ERROR(forecast("gpt2_large", "V100", {.kind = RequestKind::kGenerate}), kInput,
               "expected a request for one pass");
  EXPECT_ERROR(
      forecast_generation(forecaster(), load_model_ref("llama-3-8b"), load_gpu_ref("H100"), {}),
      kInput, "expected a request for prompts");
}

TEST(ForecastTest, ModelsAndDevicesAreReadFromText) {
  const ModelRef bundled = load_model_ref("gpt2_large");
  const ModelRef model = model_from_text(R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4,
      "n_layer": 2, "n_positions": 128, "vocab_size": 1000})",
                                         "small.json");
  EXPECT_EQ(model.name(), "small");
  const GpuRef gpu = load_gpu_ref("V100");
  EXPECT_LT(forecaster().forecast(model, gpu, {}).latency_s,
            forecaster().forecast(bundled, gpu, {}).latency_s);
  EXPECT_ERROR(model_from_text("{", "mine.json"), kInput, "mine.json");
  EXPECT_ERROR(gpu_from_text("{}", "card.json"), kInput, "card.json");
}

TEST(ForecastTest, TheRequestIsShownAsItWasUsed) {
  const Forecast f = forecast("gpt2_large", "H100", {.batch = 2});
  const Json options = parse_json(to_json(f), "out").at("options");
  EXPECT_EQ(options.at("batch"), 2);
  EXPECT_EQ(options.at("seq"), 1024);
  EXPECT_EQ(options.at("dtype"), "fp32");
  EXPECT_EQ(options.at("software"), "pytorch");
  EXPECT_EQ(options.at("host_launch_us"), 20);
  EXPECT_FALSE(options.contains("prompt"));
}

TEST(ForecastTest, ClocksCountInPassesAndInTextGeneration) {
  const auto pass = [](const std::string& clocks) {
    return forecast("gpt2_large", "A100", {.batch = 4, .execution = {.clocks = clocks}}).latency_s;
  };
  EXPECT_GT(pass("705"), 1.7 * pass("boost"));
  const auto first_token = [](const std::string& clocks) {
    Request request{.kind = RequestKind::kGenerate, .execution = {.clocks = clocks}};
    request.prompt = 1024;
    request.output = 2;
    return forecast_generation(forecaster(), load_model_ref("llama-3.2-1b"), load_gpu_ref("A100"),
                               request)
        .ttft.value;
  };
  EXPECT_GT(first_token("705"), 1.4 * first_token("boost"));
}

TEST(ForecastTest, TotalsAreTheSumOfTheKernels) {
  const Forecast f =
      forecast("gpt2_large", "V100", {.batch = 2, .mode = Mode::kTraining, .seq = 512});
  double seconds = 0;
  int64_t flops = 0;
  for (const KernelForecast& k : f.kernels) {
    seconds += k.latency_s * static_cast<double>(k.count);
    flops += k.flops * k.count;
  }
  EXPECT_NEAR(f.kernels_s, seconds, 1e-9 * seconds);
  EXPECT_NEAR(f.latency_s, f.kernels_s + f.host_wait_s, 1e-9 * seconds);
  EXPECT_NEAR(f.latency_s, f.forward_s + f.backward_s + f.optimizer_s, 1e-9 * seconds);
  EXPECT_EQ(f.flops, flops);
  EXPECT_LT(f.latency_s.low, f.latency_s);
  EXPECT_GT(f.latency_s.high, f.latency_s);
}

TEST(ForecastTest, ErrorsOfASumCancelInPart) {
  // On a device that nobody measured; no further than the sum of all the kernels' intervals.
  const Forecast f = forecast("gpt2_large", "H100", {.batch = 2, .seq = 512});
  double low = 0, high = 0;
  for (const KernelForecast& k : f.kernels) {
    low += k.latency_s.low * static_cast<double>(k.count);
    high += k.latency_s.high * static_cast<double>(k.count);
  }
  EXPECT_GT(f.latency_s.low, low);
  EXPECT_LT(f.latency_s.high, high);
  EXPECT_LT(f.latency_s.low, f.latency_s);
  EXPECT_GT(f.latency_s.high, f.latency_s);
}

TEST(ForecastTest, ShortKernelsRunAtTheHostsPace) {
  Request options{.seq = 1};
  const Forecast eager = forecast("gpt2_large", "H100", options);
  options.execution.host_launch_s = 0;
  const Forecast graphs = forecast("gpt2_large", "H100", options);
  EXPECT_NEAR(graphs.host_wait_s, 0, 1e-12);
  EXPECT_NEAR(graphs.latency_s, eager.kernels_s, 1e-9);
  EXPECT_GT(eager.host_wait_s, 0);
  int64_t launches = 0;
  for (const KernelForecast& k : eager.kernels) launches += k.count;
  EXPECT_GE(eager.latency_s, static_cast<double>(launches - 1) * 5e-6);
  // Long kernels hide the host.
  EXPECT_LT(forecast("gpt2_large", "H100", {.batch = 8}).host_wait_s, 1e-4);
}

TEST(ForecastTest, JsonHoldsTheContract) {
  const Json json = parse_json(to_json(forecast("gpt2_large", "H100", {})), "out");
  for (const char* key :
       {"schema_version", "model", "gpu", "mode", "batch", "seq", "dtype", "latency_s",
        "latency_low_s", "latency_high_s", "forward_s", "backward_s", "optimizer_s", "flops",
        "bytes", "utilization_ratio", "memory", "kernels", "warnings"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key : {"peak_bytes", "weights_bytes", "gradients_bytes", "optimizer_bytes",
                          "activations_bytes", "workspace_bytes", "framework_bytes", "fits"})
    EXPECT_TRUE(json["memory"].contains(key)) << key;
  for (const char* key :
       {"name", "op", "phase", "dtype", "shape", "count", "latency_s", "low_s", "high_s", "flops",
        "bytes", "limit", "tile", "waves", "utilization_ratio", "predictor", "extrapolated"})
    EXPECT_TRUE(json["kernels"][0].contains(key)) << key;
}

TEST(ForecastTest, TheOptimizerAddsItsStepAndItsStates) {
  const Request plain = as_published({.mode = Mode::kTraining, .seq = 128});
  Request adam = plain;
  adam.optimizer = Optimizer::kAdamW;
  const Forecast a = forecast("gpt2_med", "A100", plain);
  const Forecast b = forecast("gpt2_med", "A100", adam);
  EXPECT_EQ(a.optimizer_s, 0);
  EXPECT_GT(b.optimizer_s, 0);
  EXPECT_EQ(b.memory.optimizer_bytes, 8 * b.parameters);
  EXPECT_NEAR(b.latency_s, a.latency_s + b.optimizer_s, 1e-9);
}

TEST(ForecastTest, FusionSavesTime) {
  EXPECT_LT(forecast("gpt2_large", "V100", {.execution = {.fusion = Fusion::kPointwise}}).latency_s,
            forecast("gpt2_large", "V100", {}).latency_s);
}

TEST(MemoryOfAPass, TemporariesOfTheOptimizerAreApart) {
  // At a small batch the step's temporaries are the peak: one more copy of the parameters or more.
  Request request =
      as_published({.mode = Mode::kTraining, .seq = 16, .optimizer = Optimizer::kAdamW});
  const PassMemory foreach = forecast("gpt2_med", "H100", request).memory;
  request.optimizer_impl = OptimizerImpl::kFused;
  const PassMemory fused = forecast("gpt2_med", "H100", request).memory;
  EXPECT_EQ(foreach.activations_bytes, fused.activations_bytes);
  EXPECT_GT(foreach.optimizer_temporaries_bytes, foreach.weights_bytes * 9 / 10);
  EXPECT_EQ(fused.optimizer_temporaries_bytes, 0);
  EXPECT_LT(foreach.activations_bytes, foreach.weights_bytes / 2);
}

TEST(Adapters, WhatExpertsDoIsSaid) {
  const auto said = [](const std::string& dtype) {
    Request request{.mode = Mode::kTraining, .seq = 128, .lora_rank = 8};
    request.execution.dtype = dtype;
    return join(warning_texts(forecast("mixtral-8x7b", "H200", request).warnings), "; ");
  };
  const std::string lora = said("bf16"), qlora = said("int4_wo");
  EXPECT_NE(lora.find("experts have no adapters"), std::string::npos) << lora;
  EXPECT_EQ(lora.find("experts stay in"), std::string::npos) << lora;
  // 32 layers of 8 experts of 3 x 4096 x 14336 in 16 bits.
  EXPECT_NE(qlora.find("experts stay in bf16 (84.0 GiB)"), std::string::npos) << qlora;
}

TEST(ForecastTest, TheLargestBatchIsTheLast) {
  const ModelRef model = load_model_ref("gpt2_large");
  const GpuRef gpu = load_gpu_ref("V100");
  const auto largest = forecaster().largest_batch(model, gpu, {.mode = Mode::kTraining});
  ASSERT_TRUE(largest);
  EXPECT_TRUE(
      forecaster().forecast(model, gpu, {.batch = *largest, .mode = Mode::kTraining}).memory.fits);
  EXPECT_FALSE(forecaster()
                   .forecast(model, gpu, {.batch = *largest + 1, .mode = Mode::kTraining})
                   .memory.fits);
  EXPECT_FALSE(forecaster().largest_batch(load_model_ref("llama-3-8b"), load_gpu_ref("P4"), {}));
}

TEST(BadRequests, SayWhatToDo) {
  EXPECT_ERROR(forecast("gpt2_large", "V100", {.seq = 2048}), kInput,
               "2048 tokens is longer than the model's 1024 positions; use `seq` 1024 or less");
  EXPECT_ERROR(forecast("gpt2_large", "V100", {.execution = {.dtype = "bf16"}}), kUnsupported,
               "no unit that multiplies bf16");
  EXPECT_ERROR(forecast("gpt2_large", "V100", {.optimizer = Optimizer::kSgd}), kInput,
               "needs `mode` training");
  EXPECT_ERROR(forecast("gpt2_large", "V100", {.execution = {.tp = 4}}), kInput,
               "`tp` needs `mode` training");
}

}  // namespace
}  // namespace tilecast
