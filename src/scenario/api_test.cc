#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "report/text_table.h"
#include "request/access.h"
#include "scenario/remedies.h"
#include "schema/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

Forecast forecast(const std::string& model, const std::string& gpu, const Request& request) {
  return forecaster().forecast(load_model_ref(model), load_gpu_ref(gpu), request);
}

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
  EXPECT_ERROR(forecast_llm(forecaster(), load_model_ref("llama-3-8b"), load_gpu_ref("H100"), {}),
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

TEST(KernelTest, RunsAtTheClockThatIsAskedFor) {
  const auto seconds = [](const std::string& clocks) {
    return forecaster()
        .kernel("linear", load_gpu_ref("A100-PCIE-80GB"), "fp32",
                {{"m", 4096}, {"n", 4096}, {"k", 4096}}, {.clocks = clocks})
        .front()
        .latency_s;
  };
  // The device file: 1065 MHz base, 1410 MHz boost.
  EXPECT_EQ(seconds("1410"), seconds("boost"));
  EXPECT_EQ(seconds("1065"), seconds("base"));
  // At the boost clock the board's power limits the lanes a little.
  EXPECT_NEAR(seconds("705") / seconds("boost"), 1.95, 0.1) << "the lanes compute at half the rate";
  // A copy waits for the memory, whose clock is another.
  const auto copy = [](const std::string& clocks) {
    return forecaster()
        .kernel("copy", load_gpu_ref("A100"), "fp32", {{"n", 1 << 28}}, {.clocks = clocks})
        .front()
        .latency_s;
  };
  EXPECT_NEAR(copy("705") / copy("boost"), 1, 0.02);
}

TEST(KernelTest, ClocksThatADeviceCannotHaveAreRefused) {
  const auto kernel = [](const char* gpu, const std::string& clocks) {
    return forecaster().kernel("linear", load_gpu_ref(gpu), "bf16", {}, {.clocks = clocks});
  };
  EXPECT_ERROR(kernel("H100", "bost"), kInput,
               "`clocks`: expected boost, base or a number of MHz from 10 to 10000, found 'bost'");
  EXPECT_ERROR(kernel("H100", "nan"), kInput, "found 'nan'");
  EXPECT_ERROR(kernel("H100", "5000"), kInput,
               "more than twice the boost clock of nvidia-h100-sxm5-80gb, 1980 MHz");
  EXPECT_ERROR(kernel("B200", "base"), kUnsupported, "states no base clock");
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
    return forecast_llm(forecaster(), load_model_ref("llama-3.2-1b"), load_gpu_ref("A100"), request)
        .ttft.seconds;
  };
  EXPECT_GT(first_token("705"), 1.4 * first_token("boost"));
}

TEST(KernelTest, UnknownWordsAndSizesAreRefusedInTheLibraryToo) {
  const auto kernel = [](const std::string& op, const std::vector<GivenSize>& sizes,
                         const KernelOptions& options = {}) {
    return forecaster().kernel(op, load_gpu_ref("H100"), "bf16", sizes, options);
  };
  EXPECT_ERROR(kernel("linear", {}, {.predictor = "lerned"}), kInput,
               "`predictor`: unknown value 'lerned'; did you mean 'learned'?");
  EXPECT_ERROR(kernel("linear", {}, {.software = "torch"}), kInput,
               "`software`: unknown value 'torch'; did you mean 'pytorch'?");
  EXPECT_ERROR(kernel("experts", {{"scheme", "fp5"}}), kInput, "scheme: unknown scheme 'fp5'");
  EXPECT_ERROR(kernel("attention", {{"kv_dtype", "fp5"}}), kInput, "kv_dtype: unknown dtype");
  EXPECT_ERROR(kernel("attention", {{"heads", "many"}}), kInput,
               "heads: expected a whole number, found 'many'");
  EXPECT_ERROR(kernel("linear", {{"heads", 9}}), kInput, "linear takes no heads; it takes batch");
  EXPECT_ERROR(kernel("linear", {{"m", 0}}), kInput, "linear: m must be at least 1, found 0");
  EXPECT_ERROR(kernel("linear", {{"batch", -5}}), kInput, "batch must be at least 1, found -5");
  EXPECT_ERROR(kernel("attention", {{"heads", 0}}), kInput, "heads must be at least 1");
  EXPECT_ERROR(kernel("attention", {{"kv_heads", -1}}), kInput, "kv_heads must be at least 0");
  EXPECT_ERROR(kernel("attention", {{"kv_heads", 3}}), kInput, "3 kv_heads do not divide 8 heads");
  EXPECT_ERROR(kernel("attention", {{"window", -1}}), kInput, "window must be at least 0");
  EXPECT_ERROR(kernel("experts", {{"num_experts", 0}}), kInput, "num_experts must be at least 1");
  EXPECT_ERROR(kernel("experts", {{"num_experts", 4}, {"top_k", 5}}), kInput,
               "a token cannot go to 5 of 4 experts");
  EXPECT_ERROR(kernel("experts", {{"skew", -1}}), kInput, "skew must be at least 0");
  EXPECT_ERROR(kernel("view", {{"m", 1}}), kUnsupported, "view launches no kernel");
  EXPECT_ERROR(evaluate(forecaster(), "/nowhere", "foo"), kInput, "`predictor`: unknown value");
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
  EXPECT_LT(f.latency_low_s, f.latency_s);
  EXPECT_GT(f.latency_high_s, f.latency_s);
}

TEST(ForecastTest, ErrorsOfASumCancelInPart) {
  // On a device that nobody measured; no further than the sum of all the kernels' intervals.
  const Forecast f = forecast("gpt2_large", "H100", {.batch = 2, .seq = 512});
  double low = 0, high = 0;
  for (const KernelForecast& k : f.kernels) {
    low += k.low_s * static_cast<double>(k.count);
    high += k.high_s * static_cast<double>(k.count);
  }
  EXPECT_GT(f.latency_low_s, low);
  EXPECT_LT(f.latency_high_s, high);
  EXPECT_LT(f.latency_low_s, f.latency_s);
  EXPECT_GT(f.latency_high_s, f.latency_s);
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
  const Request plain{.mode = Mode::kTraining, .seq = 128};
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

TEST(Remedies, ChangesThatHelpOnlyBesideOthersAreTriedInPairs) {
  // The optimizer step is the peak: checkpointing alone saves nothing, and ZeRO alone not enough.
  Request request{.batch = 16, .mode = Mode::kTraining, .seq = 2048};
  request.execution.dtype = "bf16";
  request.execution.dp = 16;
  request.optimizer = Optimizer::kAdamW;
  const std::vector<MemoryRemedy> found =
      memory_remedies(forecaster(), load_model_ref("llama-3.1-70b"), load_gpu_ref("H100"), request);
  const auto fitting = std::find_if(found.begin(), found.end(),
                                    [](const MemoryRemedy& remedy) { return remedy.fits; });
  ASSERT_NE(fitting, found.end());
  ASSERT_EQ(fitting->also.size(), 1u);
  Request changed = request;
  set_option(changed, *find_option(fitting->option, RequestKind::kPass), fitting->value);
  set_option(changed, *find_option(fitting->also[0].option, RequestKind::kPass),
             fitting->also[0].value);
  const MemoryForecast memory = forecast("llama-3.1-70b", "H100", changed).memory;
  EXPECT_TRUE(memory.fits);
  EXPECT_EQ(memory.peak_bytes, fitting->peak_bytes);
  // In the optimizer step no parameters are gathered: the backward pass is the peak, whatever the
  // optimizer needs beside.
  EXPECT_EQ(memory.peak_phase, "backward");
  changed.optimizer_impl = OptimizerImpl::kFused;
  EXPECT_EQ(forecast("llama-3.1-70b", "H100", changed).memory.peak_bytes, memory.peak_bytes);
}

TEST(Remedies, PairsAreTriedIfNoOptionIsEnough) {
  const auto remedies = [](const std::string& model, const std::string& gpu, Request request) {
    return memory_remedies(forecaster(), load_model_ref(model), load_gpu_ref(gpu), request);
  };
  // 1.2 G parameters in FP32 and AdamW take 20 of 24 GB.
  const Request request{
      .batch = 8, .mode = Mode::kTraining, .seq = 2048, .optimizer = Optimizer::kAdamW};
  const std::vector<MemoryRemedy> found = remedies("llama-3.2-1b", "RTX 4090", request);
  ASSERT_FALSE(found.empty());
  bool pair = false;
  for (const MemoryRemedy& remedy : found) {
    if (remedy.also.empty()) {
      EXPECT_FALSE(remedy.fits) << remedy.option;
      continue;
    }
    pair = true;
    EXPECT_TRUE(remedy.fits) << remedy.option << " and " << remedy.also[0].option;
    Request changed = request;
    set_option(changed, *find_option(remedy.option, RequestKind::kPass), remedy.value);
    for (const auto& [option, value] : remedy.also)
      set_option(changed, *find_option(option, RequestKind::kPass), value);
    EXPECT_EQ(forecast("llama-3.2-1b", "RTX 4090", changed).memory.peak_bytes, remedy.peak_bytes);
  }
  EXPECT_TRUE(pair);
}

TEST(Remedies, OfSeveralRanksKeepTheNumberOfGpus) {
  Request request{.batch = 32,
                  .mode = Mode::kTraining,
                  .seq = 2048,
                  .optimizer = Optimizer::kAdamW,
                  .execution = {.dtype = "bf16", .attention = AttentionKind::kFlash, .dp = 8}};
  const std::vector<MemoryRemedy> found = memory_remedies(
      forecaster(), load_model_ref("llama-3-8b"), load_gpu_ref("A100-40GB"), request);
  const auto has = [&](const std::string& option) {
    return std::any_of(found.begin(), found.end(),
                       [&](const MemoryRemedy& r) { return r.option == option; });
  };
  EXPECT_TRUE(has("zero"));
  EXPECT_TRUE(has("tp"));
  EXPECT_TRUE(has("micro-batch-size"));
  EXPECT_TRUE(has("checkpointing"));
  for (const MemoryRemedy& remedy : found) {
    if (remedy.option == "tp") {
      EXPECT_EQ(remedy.value, "2");
      EXPECT_EQ(remedy.also.at(0).option, "dp");
      EXPECT_EQ(remedy.also.at(0).value, "4");
    }
  }
}

TEST(MemoryOfAPass, TemporariesOfTheOptimizerAreApart) {
  // At a small batch the step's temporaries are the peak: one more copy of the parameters or more.
  Request request{.mode = Mode::kTraining, .seq = 16, .optimizer = Optimizer::kAdamW};
  const MemoryForecast foreach = forecast("gpt2_med", "H100", request).memory;
  request.optimizer_impl = OptimizerImpl::kFused;
  const MemoryForecast fused = forecast("gpt2_med", "H100", request).memory;
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

TEST(EvaluateTest, ListsErrorsAndWhatItCouldNotUse) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a.csv",
             "gpu,op,dtype,m,n,k,latency_s,protocol\nT4,add,fp32,1,50000000,1,0.0025,back_to_back\n"
             "X9,add,fp32,1,1000,1,1e-5,back_to_back\n");
  const Evaluation e = evaluate(forecaster(), folder.path().string());
  ASSERT_EQ(e.rows.size(), 1u);
  EXPECT_EQ(e.rows[0].gpu, "nvidia-t4");
  EXPECT_EQ(e.rows[0].count, 1);
  EXPECT_LT(e.rows[0].mape_percent, 30);
  ASSERT_EQ(e.unmatched.size(), 1u);
  EXPECT_NE(e.unmatched[0].find("unknown GPU 'X9'"), std::string::npos);
  EXPECT_NO_THROW(parse_json(to_json(e), "out"));
}

TEST(Table, FitsATerminal) {
  const Forecast f = forecast("gpt2_large", "H100", {.mode = Mode::kTraining});
  for (const int width : {60, 80, 120}) {
    for (const std::string& line : split(forecast_table(f, {.width = width}), '\n'))
      EXPECT_LE(display_width(line), static_cast<size_t>(width)) << line;
  }
  EXPECT_EQ(forecast_table(f, {}).find('\x1b'), std::string::npos);
}

TEST(Table, ColorsLimitsAndWhatDoesNotFit) {
  const Forecast f = forecast("gpt2_large", "T4", {.batch = 64, .mode = Mode::kTraining});
  const std::string table = forecast_table(f, {.color = true});
  EXPECT_NE(table.find("\x1b[31mDOES NOT FIT into 14.8 GiB"), std::string::npos) << table;
  EXPECT_NE(table.find("\x1b[32mcompute\x1b[0m"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
