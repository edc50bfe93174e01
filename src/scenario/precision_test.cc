// Which type a forecast is in, and who says so.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "schema/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

Forecast forecast(const ModelRef& model, const std::string& gpu, const Request& options) {
  return forecaster().forecast(model, load_gpu_ref(gpu), options);
}

GenerationForecast answer(const ModelRef& model, const std::string& gpu, Request request) {
  request.kind = RequestKind::kGenerate;
  return forecast_generation(forecaster(), model, load_gpu_ref(gpu), request);
}

/// A small Llama with further fields, and ModelOpt's file beside it.
ModelRef llama(const std::string& more, const std::string& beside = "") {
  const TemporaryFolder folder;
  write_file(folder.path() / "config.json",
             R"({"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 8,
                 "num_hidden_layers": 4, "intermediate_size": 2048, "vocab_size": 1000,
                 "max_position_embeddings": 4096)" +
                 more + "}");
  if (!beside.empty()) write_file(folder.path() / "hf_quant_config.json", beside);
  return load_model_ref(folder.path().string());
}

constexpr const char* kBf16 = R"(, "torch_dtype": "bfloat16")";
constexpr const char* kFp8 =
    R"(, "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]})";
constexpr const char* kNvfp4 =
    R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}})";

bool any_has(const std::vector<Warning>& warnings, const std::string& part) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const Warning& warning) {
    return warning_text(warning).find(part) != std::string::npos;
  });
}

TEST(PrecisionTest, TheCheckpointsTypeIsTheDefault) {
  const Request prompt{.prompt = 64, .output = 8};
  const Forecast none = forecast(llama(""), "H100", {.seq = 64});
  EXPECT_EQ(none.dtype, "fp32");
  EXPECT_EQ(none.dtype_source, "default");
  EXPECT_EQ(answer(llama(""), "H100", prompt).dtype, "bf16");
  EXPECT_EQ(answer(llama(""), "H100", prompt).dtype_source, "default");
  const Forecast bf16 = forecast(llama(kBf16), "H100", {.seq = 64});
  EXPECT_EQ(bf16.dtype, "bf16");
  EXPECT_EQ(bf16.dtype_source, "torch_dtype");
  // The angles of the rotary embedding (64 numbers) stay in fp32.
  EXPECT_EQ((bf16.memory.weights_bytes - 4 * 64) * 2, none.memory.weights_bytes - 4 * 64);
  const Forecast asked =
      forecast(llama(kBf16), "H100", {.seq = 64, .execution = {.dtype = "fp16"}});
  EXPECT_EQ(asked.dtype, "fp16");
  EXPECT_EQ(asked.dtype_source, "asked");
  EXPECT_NE(forecast_table(bf16, {.width = 200}).find("bf16 (torch_dtype)"), std::string::npos);
  EXPECT_NE(to_json(bf16).find("\"dtype_source\": \"torch_dtype\""), std::string::npos);
}

TEST(PrecisionTest, WhatTheDeviceHasNotIsReplacedWithAWarning) {
  const Forecast t4 = forecast(llama(kBf16), "T4", {.seq = 64});
  EXPECT_EQ(t4.dtype, "fp16");
  EXPECT_TRUE(any_has(t4.warnings, "nvidia-t4 does not support bf16: forecast in fp16 instead"));
  const Forecast p4 = forecast(llama(kBf16), "P4", {.seq = 64});
  EXPECT_EQ(p4.dtype, "fp32");
  EXPECT_TRUE(any_has(p4.warnings, "forecast in fp32 instead"));
  EXPECT_EQ(answer(llama(""), "V100", {.prompt = 64, .output = 8}).dtype, "fp16");
  // A dtype that was asked for is not replaced.
  EXPECT_ERROR(forecast(llama(kBf16), "T4", {.seq = 64, .execution = {.dtype = "bf16"}}),
               kUnsupported, "no unit that multiplies bf16");
}

TEST(PrecisionTest, QuantizedCheckpointsAreForecastAsStored) {
  const Forecast plain = forecast(llama(kBf16), "H100", {.seq = 64});
  const Forecast fp8 = forecast(llama(kFp8), "H100", {.seq = 64});
  EXPECT_EQ(fp8.dtype, "fp8_block");
  EXPECT_EQ(fp8.dtype_source, "quantization_config");
  // Tables and the output layer stay in bf16.
  const int64_t tables = 2 * 2 * 1000 * 1024;
  EXPECT_NEAR(static_cast<double>(fp8.memory.weights_bytes),
              static_cast<double>((plain.memory.weights_bytes - tables) / 2 + tables),
              0.01 * static_cast<double>(plain.memory.weights_bytes));
  const GenerationForecast served = answer(llama(kFp8), "H100", {.prompt = 64, .output = 8});
  EXPECT_EQ(served.dtype, "fp8_block");
  EXPECT_EQ(served.memory.weights_bytes, fp8.memory.weights_bytes - 4 * 64)
      << "less rotary buffers";
}

TEST(PrecisionTest, FewBitsAreConvertedByTheKernelWhereTheDeviceHasNoUnit) {
  const Request prompt{.prompt = 64, .output = 8};
  const GenerationForecast a100 = answer(llama(kFp8), "A100", prompt);
  EXPECT_EQ(a100.dtype, "fp8_wo");
  EXPECT_TRUE(any_has(a100.warnings,
                      "the weights stay in 8 bits and the kernel converts them to bf16 (fp8_wo)"));
  EXPECT_TRUE(any_has(a100.warnings, "as vLLM's and SGLang's Marlin kernels do"));
  EXPECT_TRUE(
      any_has(answer(llama(kFp8), "V100", prompt).warnings, "no serving software is known"));
  const GenerationForecast h100 = answer(llama(kBf16, kNvfp4), "H100", prompt);
  EXPECT_EQ(h100.dtype, "nvfp4_wo");
  EXPECT_EQ(h100.dtype_source, "hf_quant_config.json");
  const GenerationForecast b200 = answer(llama(kBf16, kNvfp4), "B200", prompt);
  EXPECT_EQ(b200.dtype, "fp4");
  EXPECT_EQ(b200.memory.weights_bytes, h100.memory.weights_bytes);
  EXPECT_FALSE(any_has(b200.warnings, "the kernel converts"));
}

TEST(PrecisionTest, TheCacheIsAsTheCheckpointSays) {
  const Request prompt{.prompt = 64, .output = 8};
  EXPECT_EQ(answer(llama(kBf16, kNvfp4), "B200", prompt).kv_dtype, "fp8");
  EXPECT_EQ(answer(llama(kBf16), "B200", prompt).kv_dtype, "bf16");
  const GenerationForecast a100 = answer(llama(kBf16, kNvfp4), "A100", prompt);
  EXPECT_EQ(a100.kv_dtype, "bf16");
  EXPECT_TRUE(any_has(a100.warnings, "the cache is in bf16"));
  // ModelOpt's file where only the cache is quantized.
  const GenerationForecast alone = answer(
      llama(kBf16, R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})"),
      "H100", prompt);
  EXPECT_EQ(alone.dtype, "bf16");
  EXPECT_EQ(alone.kv_dtype, "fp8");
  const GenerationForecast unknown = answer(
      llama(kBf16, R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "NVFP4"}})"),
      "H100", prompt);
  EXPECT_TRUE(any_has(unknown.warnings, "the checkpoint's KV cache is in 'nvfp4'"));
  Request asked = prompt;
  asked.execution.dtype = "bf16";
  EXPECT_EQ(answer(llama(kBf16, kNvfp4), "B200", asked).kv_dtype, "bf16");
}

TEST(PrecisionTest, TrainingRunsInTheCheckpointsBaseType) {
  const Forecast f = forecast(llama(kFp8), "H100", {.mode = Mode::kTraining, .seq = 64});
  EXPECT_EQ(f.dtype, "bf16");
  EXPECT_TRUE(
      any_has(f.warnings, "the checkpoint's fp8_block (quantization_config) is for inference"));
  EXPECT_ERROR(forecast(llama(kFp8), "H100",
                        {.mode = Mode::kTraining, .seq = 64, .execution = {.dtype = "int8"}}),
               kUnsupported, "quantized weights cannot be trained; use `lora-rank`");
}

TEST(PrecisionTest, TrainingInFp8NeedsUnitsForIt) {
  const Request request{.mode = Mode::kTraining, .seq = 64, .execution = {.dtype = "fp8"}};
  const Forecast f = forecast(llama(kBf16), "H100", request);
  EXPECT_EQ(f.dtype, "fp8");
  EXPECT_TRUE(std::any_of(f.kernels.begin(), f.kernels.end(),
                          [](const KernelForecast& k) { return k.op == "fp8_gemm"; }));
  EXPECT_ERROR(forecast(llama(kBf16), "A100-SXM4-80GB", request), kUnsupported, "has no fp8 unit");
}

TEST(PrecisionTest, APassInFp8IsNotThatOfAnotherGpuWhichMultipliesColumnsToo) {
  // Copies of the weights in one layout instead of two.
  const Request request{.mode = Mode::kTraining, .seq = 64, .execution = {.dtype = "fp8"}};
  const ModelRef model = llama(kBf16);  // one forecaster remembers passes of a model
  const Forecast both = forecast(model, "H100", request), one = forecast(model, "B200", request);
  EXPECT_LT(one.memory.weights_bytes, both.memory.weights_bytes);
}

TEST(PrecisionTest, TrainingInNvfp4NeedsUnitsForItAndSaysThatItWasNotMeasured) {
  const Request request{.mode = Mode::kTraining, .seq = 64, .execution = {.dtype = "nvfp4"}};
  const Forecast f = forecast(llama(kBf16), "B200", request);
  EXPECT_EQ(f.dtype, "fp4");
  EXPECT_TRUE(std::any_of(f.kernels.begin(), f.kernels.end(),
                          [](const KernelForecast& k) { return k.op == "fp4_gemm"; }));
  EXPECT_TRUE(any_has(f.warnings, "operators without a measured kernel"));
  EXPECT_ERROR(forecast(llama(kBf16), "H100", request), kUnsupported,
               "has no fp4 unit; use `dtype` fp8");
  EXPECT_ERROR(forecast(llama(kBf16), "A100-SXM4-80GB", request), kUnsupported,
               "has no fp4 unit; use `dtype` bf16");
  EXPECT_ERROR(forecast(llama(kBf16), "MI355X", request), kUnsupported,
               "NVFP4 is known of NVIDIA's GPUs alone");
}

TEST(PrecisionTest, LayersInBf16NeedOthersInFewerBits) {
  Request request{.mode = Mode::kTraining, .seq = 64, .execution = {.dtype = "nvfp4"}};
  const auto narrow = [&] {
    double flops = 0;
    for (const KernelForecast& k : forecast(llama(kBf16), "B200", request).kernels) {
      if (k.op == "fp4_linear" || k.op == "fp4_gemm")
        flops += static_cast<double>(k.flops * k.count);
    }
    return flops;
  };
  const double all = narrow();
  request.bf16_end_layers = 1;
  EXPECT_NEAR(narrow(), 0.75 * all, 1e-6 * all) << "one of four layers";
  request.bf16_start_layers = 4;
  EXPECT_ERROR(forecast(llama(kBf16), "B200", request), kInput, "more than the model's 4 layers");
  request.execution.dtype = "bf16";
  EXPECT_ERROR(forecast(llama(kBf16), "B200", request), kInput,
               "`num-layers-at-start-in-bf16` has no effect without `dtype` fp8 or fp4");
}

TEST(PrecisionTest, UnknownSchemesAndNamesAreRefused) {
  const ModelRef odd = llama(R"(, "quantization_config": {"quant_method": "squeezellm"})");
  EXPECT_ERROR(forecast(odd, "H100", {.seq = 64}), kUnsupported,
               "unknown quantization scheme 'squeezellm'");
  EXPECT_EQ(forecast(odd, "H100", {.seq = 64, .execution = {.dtype = "bf16"}}).dtype, "bf16");
  EXPECT_ERROR(forecast(llama(""), "H100", {.seq = 64, .execution = {.dtype = "bf61"}}), kInput,
               "`dtype`: unknown value 'bf61'; did you mean 'bf16'");
  EXPECT_ERROR(forecast(llama(""), "H100", {.seq = 64, .execution = {.dtype = "int64"}}), kInput,
               "unknown value");
  EXPECT_ERROR(answer(llama(""), "H100", {.execution = {.dtype = "amp"}}), kInput,
               "unknown value 'amp'");
}

TEST(PrecisionTest, OptimizerStatesFollowTheParameters) {
  const auto step = [](const char* dtype) {
    return forecast(load_model_ref("gpt2_large"), "H100",
                    as_published({.mode = Mode::kTraining,
                                  .seq = 128,
                                  .optimizer = Optimizer::kAdamW,
                                  .execution = {.dtype = dtype}}));
  };
  const Forecast fp32 = step("fp32"), bf16 = step("bf16"), amp = step("amp");
  EXPECT_EQ(fp32.memory.optimizer_bytes, 8 * fp32.parameters);
  EXPECT_EQ(bf16.memory.optimizer_bytes, 4 * bf16.parameters);
  EXPECT_EQ(bf16.memory.gradients_bytes, 2 * bf16.parameters);
  EXPECT_LT(bf16.optimizer_s, 0.7 * fp32.optimizer_s);
  // Autocast: everything that is kept is fp32, and kept once.
  EXPECT_EQ(amp.memory.optimizer_bytes, fp32.memory.optimizer_bytes);
  EXPECT_EQ(amp.memory.weights_bytes, fp32.memory.weights_bytes);
  EXPECT_EQ(amp.memory.gradients_bytes, fp32.memory.gradients_bytes);
  EXPECT_DOUBLE_EQ(amp.optimizer_s, fp32.optimizer_s);
}

TEST(PrecisionTest, AutocastComesInBothTypes) {
  const ModelRef model = load_model_ref("gpt2_med");
  const Request training{.mode = Mode::kTraining, .seq = 128, .optimizer = Optimizer::kSgd};
  const auto with = [&](const char* gpu, const char* dtype) {
    Request options = training;
    options.execution.dtype = dtype;
    return forecast(model, gpu, options);
  };
  EXPECT_ERROR(with("T4", "amp"), kUnsupported, "nvidia-t4 has no bf16 unit; use `dtype` amp-fp16");
  const Forecast fp16 = with("T4", "amp-fp16"), fp32 = with("T4", "fp32");
  EXPECT_LT(fp16.latency_s, fp32.latency_s);
  EXPECT_GT(fp16.optimizer_s, 1.2 * fp32.optimizer_s) << "unscaling reads and writes the gradients";
  // In inference the copies of the weights live to the end of the pass.
  Request inference{.seq = 128, .execution = {.dtype = "amp"}};
  const Forecast copies = forecast(model, "H100", inference);
  EXPECT_GT(copies.memory.activations_bytes, copies.memory.weights_bytes / 3);
}

/// Seconds of a step's layers of experts; 0 where one of them was never measured.
double expert_seconds(const StepForecast& step) {
  double seconds = 0;
  for (const KernelForecast& k : step.kernels) {
    if (k.op != "experts") continue;
    if (k.extrapolated) return 0;
    seconds += k.latency_s * static_cast<double>(k.count);
  }
  return seconds;
}

TEST(PrecisionTest, ExpertsThatFewBitsMakeSlowerAreSaid) {
  const ModelRef model = load_model_ref("qwen3-30b-a3b");
  for (const char* dtype : {"fp8", "fp8_block", "int4_wo"}) {
    for (const Software software : {software_of("vllm"), software_of("trtllm")}) {
      Request options{.batch = 8, .prompt = 512, .output = 8, .execution = {.software = software}};
      options.execution.dtype = "bf16";
      const GenerationForecast wide = answer(model, "H200", options);
      options.execution.dtype = dtype;
      const GenerationForecast low_precision = answer(model, "H200", options);
      const auto check = [&](const char* name, const StepForecast& w, const StepForecast& n) {
        // Nothing is said where one of both was never measured.
        const bool both = expert_seconds(n) > 0 && expert_seconds(w) > 0;
        const bool slower = expert_seconds(n) >= 1.05 * expert_seconds(w);
        EXPECT_EQ(any_has(low_precision.warnings, std::string(name) + ": experts in " + dtype),
                  slower && both)
            << dtype << " " << static_cast<int>(software) << " "
            << expert_seconds(n) / expert_seconds(w);
      };
      check("prefill", wide.prefill, low_precision.prefill);
      check("decode", wide.decode, low_precision.decode);
      EXPECT_FALSE(any_has(wide.warnings, "experts in"));
    }
  }
}

TEST(PrecisionTest, AGraphFileFixesShapesAndTypes) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "g.tcg").string();
  write_file(path, "graph g\ninput x: fp16[64, 256]\nweight w: fp16[256, 256]\ny = linear(x, w)\n");
  const ModelRef model = load_model_ref(path);
  const Forecast f = forecast(model, "V100", {});
  EXPECT_EQ(f.dtype, "fp16");
  EXPECT_EQ(f.dtype_source, "graph");
  EXPECT_EQ(forecast_table(f, {}).find("seq"), std::string::npos);
  EXPECT_ERROR(forecast(model, "V100", {.batch = 4096}), kInput, "a graph file fixes its shapes");
  EXPECT_ERROR(forecast(model, "V100", {.seq = 4096}), kInput, "omit `batch` and `seq`");
  EXPECT_ERROR(forecast(model, "V100", {.execution = {.dtype = "fp32"}}), kUnsupported,
               "a graph file defines its dtypes (here fp16)");
  for (const char* dtype : {"amp", "amp-fp16", "fp8", "int4_wo", "tf32"})
    EXPECT_ERROR(forecast(model, "H100", {.execution = {.dtype = dtype}}), kUnsupported,
                 "a graph file defines its dtypes (here fp16)");
  const Forecast asked = forecast(model, "V100", {.execution = {.dtype = "fp16"}});
  EXPECT_EQ(asked.dtype_source, "asked");
  EXPECT_TRUE(asked.fixed_shapes);
  EXPECT_EQ(forecast_table(asked, {}).find("seq"), std::string::npos);
}

}  // namespace
}  // namespace tilecast
