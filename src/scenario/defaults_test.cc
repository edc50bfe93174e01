// What a forecast assumes where the request says nothing, and that it says so.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/embedded.h"
#include "base/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

Forecast forecast(const char* model, const char* gpu, const Request& request) {
  return forecaster().forecast(load_model_ref(model), load_gpu_ref(gpu), request);
}

Request training(std::optional<int64_t> seq = 128) { return {.mode = Mode::kTraining, .seq = seq}; }

bool assumes(const Forecast& f, const std::string& part) {
  const std::vector<std::string> all = assumptions(f);
  return std::any_of(all.begin(), all.end(), [&](const std::string& words) {
    return words.find(part) != std::string::npos;
  });
}

TEST(Defaults, TrainingOf16BitCheckpointsKeepsFp32Copies) {
  const Forecast f = forecast("llama-3.2-1b", "H100", training());
  EXPECT_EQ(f.dtype, "bf16");
  EXPECT_EQ(f.used.optimizer, Optimizer::kAdamW);
  EXPECT_EQ(f.used.parallel.main_params, MainParams::kFp32);
  EXPECT_EQ(f.used.execution.attention, AttentionKind::kFlash);
  // 2 of the parameter, 4 of its gradient, 12 of copy and states (Megatron-LM, dist_optimizer.md).
  const PassMemory& m = f.memory;
  EXPECT_NEAR(static_cast<double>(m.weights_bytes + m.gradients_bytes + m.optimizer_bytes) /
                  static_cast<double>(f.parameters),
              18, 0.1);
  EXPECT_TRUE(assumes(f, "fp32 copies of the parameters, states in fp32"));
  Request sgd = training();
  sgd.optimizer = Optimizer::kSgd;
  EXPECT_TRUE(assumes(forecast("llama-3.2-1b", "H100", sgd), "sgd, fp32 copies of the parameters"));
}

TEST(Defaults, TrainingOfFp32CheckpointsIsUnderAutocast) {
  EXPECT_EQ(forecast("gpt2", "H100", training()).dtype, "amp");
  EXPECT_EQ(forecast("gpt2", "V100", training()).dtype, "amp-fp16");
  EXPECT_EQ(forecast("gpt2", "P4", training()).dtype, "fp32");
  EXPECT_EQ(forecast("gpt2", "H100", training()).used.parallel.main_params, MainParams::kAsModel);
  EXPECT_EQ(forecast("gpt2", "H100", {.seq = 128}).dtype, "fp32") << "a forward pass";
}

TEST(Defaults, AttentionIsWhatTransformersTakes) {
  const auto attention = [](const char* model, const Request& request) {
    return *forecast(model, "H100", request).used.execution.attention;
  };
  EXPECT_EQ(attention("gpt2", {.seq = 64}), AttentionKind::kFlash);
  EXPECT_EQ(attention("gpt-oss-20b", {.seq = 64}), AttentionKind::kEager) << "sinks";
  EXPECT_EQ(attention("gemma-2-9b", {.seq = 64}), AttentionKind::kEager) << "capped scores";
  EXPECT_EQ(attention("t5-large", {.seq = 64}), AttentionKind::kFlash);
  EXPECT_EQ(attention("t5-large", training(64)), AttentionKind::kEager) << "a trained bias";
  Request selective = training(64);
  selective.checkpointing = Checkpointing::kSelective;
  EXPECT_EQ(attention("gpt2", selective), AttentionKind::kEager) << "keeps no scores otherwise";
}

TEST(Defaults, SharedKeyHeadsInFp32SayThatTheyTakeTheMathPath) {
  EXPECT_TRUE(assumes(forecast("llama-3.2-1b", "H100", {.seq = 64, .execution = {.dtype = "fp32"}}),
                      "math path"));
  EXPECT_TRUE(assumes(forecast("llama-3.2-1b", "H100", {.seq = 64}), "attention flash"));
}

TEST(Defaults, WhatWasMeasuredIsAskedForByOptions) {
  Request published = training();
  published.execution.dtype = "fp32";
  published.execution.attention = AttentionKind::kEager;
  published.optimizer = Optimizer::kNone;
  published.loss = Loss::kMemory;
  const Forecast f = forecast("gpt2", "V100", published);
  EXPECT_EQ(f.optimizer_s, 0);
  EXPECT_TRUE(assumes(f, "no optimizer step"));
  EXPECT_TRUE(assumes(f, "attention eager"));
}

TEST(Defaults, BundledModelsSayWhereTheirTypeComesFrom) {
  for (const EmbeddedFile& file : embedded_files("models/")) {
    const Json json = parse_json(file.content, std::string(file.path));
    EXPECT_EQ(json.contains("torch_dtype"), json.contains("torch_dtype_source")) << file.path;
  }
}

TEST(Defaults, AdaptersDoNotMakeAStepLonger) {
  Request adapters = {.batch = 4, .mode = Mode::kTraining, .seq = 1024};
  const double all_s = forecast("llama-3.2-1b", "H100", adapters).latency_s;
  adapters.lora_rank = 16;
  EXPECT_LT(forecast("llama-3.2-1b", "H100", adapters).latency_s, all_s);
}

TEST(Defaults, SoftwareRunsWhereItIsSupported) {
  Request prompt = {.kind = RequestKind::kGenerate, .prompt = 64, .output = 8};
  const auto on = [&](const char* gpu, const char* software) {
    prompt.execution.software = software_of(software);
    return forecast_generation(forecaster(), load_model_ref("gpt2"), load_gpu_ref(gpu), prompt);
  };
  EXPECT_ERROR(on("MI300X", "trtllm"), kUnsupported,
               "does not run on AMD Instinct MI300X (cdna3), but on ampere, ada, hopper, "
               "blackwell; use `software` pytorch or vllm or sglang");
  EXPECT_ERROR(on("K80", "vllm"), kUnsupported, "use `software` pytorch");
  EXPECT_GT(on("MI300X", "vllm").ttft.value, 0);
}

TEST(Defaults, ServersDoNotTrain) {
  Request request = training();
  request.execution.software = software_of("vllm");
  EXPECT_ERROR(forecast("gpt2", "H100", request), kInput, "vLLM does not train");
}

}  // namespace
}  // namespace tilecast
