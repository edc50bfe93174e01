// Memory for the cache of a server, and the messages if it is too little.

#include "scenario/generation/cache_pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "devices/registry.h"
#include "scenario/memory_total.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

GenerationForecast generated(const std::string& model, const std::string& gpu, Request request) {
  if (request.kind == RequestKind::kPass) request.kind = RequestKind::kGenerate;
  return forecast_generation(forecaster(), load_model_ref(model), load_gpu_ref(gpu), request);
}

CachePool pool(const std::string& gpu, const Execution& execution) {
  return *generated("llama-3.1-8b", gpu, {.prompt = 100, .output = 10, .execution = execution})
              .pool;
}

constexpr int64_t kWeights = 2 * 8'030'261'248;
constexpr int64_t kBlockOf16 = int64_t{16} * 131072;

TEST(CachePool, VllmTakesWhatWeightsAndProfilingLeave) {
  const CachePool p = pool("H100", {});
  EXPECT_EQ(p.rule, "gpu_memory_utilization");
  EXPECT_EQ(p.fraction, 0.9);
  EXPECT_EQ(p.weights_bytes, kWeights);
  EXPECT_EQ(p.cache_bytes, p.budget_bytes - p.weights_bytes - p.profile_bytes - p.non_torch_bytes);
  EXPECT_EQ(p.blocks, p.cache_bytes / kBlockOf16);
  EXPECT_EQ(p.tokens, 16 * p.blocks);
  EXPECT_EQ(p.max_model_len, 131072);
  EXPECT_DOUBLE_EQ(p.concurrency, static_cast<double>(p.blocks) / 8192);
  const CachePool shorter = pool("H100", {.max_model_len = 8192});
  EXPECT_DOUBLE_EQ(shorter.concurrency, static_cast<double>(p.blocks) / 512);
  EXPECT_NEAR(static_cast<double>(pool("H100", {.kv_dtype = "fp8"}).tokens),
              2 * static_cast<double>(p.tokens), 32);
}

/// The sampler of vLLM's profiling run: 14 bytes a logit, a row of FP32 for each SM, the hidden
/// states of all tokens and of the sequences, twice, and cuBLAS's workspace.
int64_t sampler_bytes(int64_t sequences, int64_t tokens, int64_t vocabulary, int64_t hidden_dim) {
  constexpr int64_t kSms = 132, kWorkspace = 33'554'432;
  return vocabulary * (14 * sequences + 4 * std::min(sequences, kSms)) +
         2 * hidden_dim * (tokens + 2 * sequences) + kWorkspace;
}

TEST(CachePool, VllmProfilesTheSamplerBesideTheTablesOfRotaryEmbedding) {
  Request request{.kind = RequestKind::kServe, .prompt = 100, .output = 10};
  request.load.concurrency = 1;
  request.load.requests = 2;
  request.execution.max_num_batched_tokens = 4096;
  for (const int64_t sequences : {500, 1000}) {
    request.load.max_num_seqs = sequences;
    // 131,072 positions of 128 cosines and sines in 16 bits.
    EXPECT_EQ(generated("llama-3.1-8b", "H100", request).pool->profile_bytes,
              sampler_bytes(sequences, 4096, 128256, 4096) + int64_t{131072} * 128 * 2);
  }
}

TEST(CachePool, WorkspacesOfExpertsStayWhileVllmProfilesTheSampler) {
  Request request{.kind = RequestKind::kServe, .prompt = 100, .output = 10};
  request.execution.max_num_batched_tokens = 8192;
  request.execution.tp = 2;
  request.load.concurrency = 1;
  request.load.requests = 2;
  request.load.max_num_seqs = 1024;
  const CachePool p = *generated("mixtral-8x7b", "H100", request).pool;
  // Two experts a token; a rank has 7,168 of 14,336 columns, twice with the gate. Hidden: 4,096.
  const int64_t workspaces = int64_t{8192} * 2 * (7168 + 14336) * 2;
  const int64_t tables = int64_t{32768} * 128 * 2;
  EXPECT_EQ(p.profile_bytes, sampler_bytes(1024, 8192, 32000, 4096) + workspaces + tables);
}

TEST(CachePool, CollectivesTakeMemoryOutsideOfPyTorch) {
  constexpr double kGib = 1 << 30;
  const CachePool one = pool("H100", {});
  EXPECT_NEAR(static_cast<double>(one.non_torch_bytes) / kGib, 0.25, 0.001);
  const GenerationForecast f =
      generated("llama-3.1-8b", "H100", {.prompt = 100, .output = 10, .execution = {.tp = 2}});
  EXPECT_NEAR(static_cast<double>(f.pool->non_torch_bytes) / kGib, 2.115, 0.001);
  EXPECT_EQ(
      f.memory.framework_bytes - f.pool->non_torch_bytes,
      generated("llama-3.1-8b", "H100", {.prompt = 100, .output = 10}).memory.framework_bytes -
          one.non_torch_bytes);
}

TEST(CachePool, NewerVllmCountsCapturedGraphs) {
  const CachePool p = pool("H100", {}), counted = pool("H100", {.count_cuda_graphs = true});
  EXPECT_GT(p.graphs_bytes, 0);
  EXPECT_EQ(counted.cache_bytes, p.cache_bytes - p.graphs_bytes);
  EXPECT_ERROR(pool("H100", {.software = software_of("sglang"), .count_cuda_graphs = true}), kInput,
               "`count-cuda-graphs`: SGLang has no such setting; it is vLLM's");
}

TEST(CachePool, TrainingFitsIntoTheMemoryThatServingSees) {
  Request request;
  request.mode = Mode::kTraining;
  request.batch = 1;
  request.seq = 128;
  for (const char* const gpu : {"H100", "T4"}) {
    const Forecast f =
        Forecaster().forecast(load_model_ref("gpt2_large"), load_gpu_ref(gpu), request);
    const int64_t visible = pool(gpu, {.dtype = "fp16"}).visible_bytes;
    EXPECT_EQ(f.memory.peak_bytes + f.memory.margin_bytes(), visible) << gpu;
    EXPECT_EQ(f.memory.fits, f.memory.peak_bytes <= visible) << gpu;
    EXPECT_EQ(f.memory.device_bytes, visible) << gpu;
  }
}

bool starts(const GenerationForecast& f) {
  return std::none_of(f.warnings.begin(), f.warnings.end(),
                      [](const Warning& w) { return w.code == WarningCode::kDoesNotStart; });
}

TEST(CachePool, AServerFitsIfItsPeakIsWithinWhatMayBeUsed) {
  for (const char* const gpu : {"H100", "L4"}) {
    for (const Software software :
         {software_of("vllm"), software_of("sglang"), software_of("trtllm")}) {
      for (const double share : {0.1, 0.7, 0.9, 0.97, 0.985, 1.0}) {
        Request request{.kind = RequestKind::kServe, .prompt = 512, .output = 64};
        request.execution.software = software;
        request.execution.dtype = "fp8";
        request.execution.gpu_memory_utilization = share;
        request.load.concurrency = 2;
        request.load.requests = 4;
        const auto forecast = [&] {
          return forecast_generation(forecaster(), load_model_ref("llama-3.1-8b"),
                                     load_gpu_ref(gpu), request);
        };
        const GenerationForecast f = forecast();
        const std::string what = fmt::format("{} {} {}", gpu, static_cast<int>(software), share);
        ASSERT_TRUE(f.pool) << what;
        EXPECT_EQ(f.memory.fits, f.memory.peak_bytes <= f.memory.usable_bytes) << what;
        EXPECT_EQ(f.memory.fits && starts(f), f.serving.has_value()) << what;
        EXPECT_LE(f.memory.usable_bytes, f.pool->visible_bytes) << what;
        if (f.memory.fits) continue;
        const auto warning =
            std::find_if(f.warnings.begin(), f.warnings.end(),
                         [](const Warning& w) { return w.code == WarningCode::kDoesNotFit; });
        ASSERT_NE(warning, f.warnings.end()) << what;
        for (const WarningFact& fact : warning->facts) {
          if (fact.name != "utilization_that_fits") continue;
          request.execution.gpu_memory_utilization = std::get<double>(fact.value);
          EXPECT_TRUE(forecast().memory.fits) << what;
        }
      }
    }
  }
}

/// The largest batch, the sequences of a server's cache and the memory of it say the same.
TEST(CachePool, TheLargestBatchIsWhatTheServersCacheHolds) {
  for (const char* const model : {"llama-3.1-8b", "gpt-oss-120b", "deepseek-v2-lite"}) {
    for (const Software software :
         {software_of("vllm"), software_of("sglang"), software_of("trtllm")}) {
      Request request{.prompt = 2000, .output = 100, .execution = {.software = software}};
      const std::string what = fmt::format("{} {}", model, software_name(software));
      const GenerationForecast batch = generated(model, "H100", request);
      request.kind = RequestKind::kServe;
      request.load.concurrency = 2;
      request.load.requests = 6;
      const GenerationForecast server = generated(model, "H100", request);
      const int64_t largest = *batch.memory.largest_batch;
      EXPECT_EQ(largest, *server.memory.largest_batch) << what;
      EXPECT_NEAR(static_cast<double>(server.serving->cache_tokens) / 2100,
                  static_cast<double>(largest), 1)
          << what;
      EXPECT_EQ(batch.memory.usable_bytes, server.memory.usable_bytes) << what;
      request.kind = RequestKind::kGenerate;
      request.load = {};
      request.batch = largest;
      EXPECT_TRUE(generated(model, "H100", request).memory.fits) << what;
      request.batch += 1;
      EXPECT_FALSE(generated(model, "H100", request).memory.fits) << what;
    }
  }
}

/// vLLM ends with an error where its cache holds no sequence of the longest length.
TEST(CachePool, WhetherAServerStartsWithoutRoomForTheLongestIsItsSoftwares) {
  for (const char* const name : {"vllm", "sglang", "trtllm"}) {
    Request request{.kind = RequestKind::kServe, .prompt = 1000, .output = 20};
    request.execution = {.dtype = "bf16", .max_model_len = 131072};
    request.execution.software = software_of(name);
    request.load.concurrency = 1;
    request.load.requests = 3;
    const GenerationForecast f = generated("llama-3.1-8b", "L4", request);
    ASSERT_LT(f.pool->concurrency, 1) << name;
    EXPECT_EQ(starts(f), std::string(name) != "vllm") << name;
    EXPECT_EQ(f.serving.has_value(), starts(f)) << name;
    const std::string table = llm_table(f, {.width = 200});
    EXPECT_NE(table.find(starts(f) ? "the server starts, and takes sequences of at most"
                                   : "the server does not start: use --max-model-len"),
              std::string::npos)
        << name;
  }
}

TEST(CachePool, EachSoftwareHasItsRule) {
  const CachePool sglang = pool("H100", {.software = software_of("sglang")});
  EXPECT_EQ(sglang.rule, "mem_fraction_static");
  // 81920 MiB less 512 + 1.5 x 8192 + 2 x 256 + 128.
  EXPECT_DOUBLE_EQ(sglang.fraction, 0.836);
  EXPECT_EQ(sglang.cache_bytes, sglang.budget_bytes - kWeights);
  EXPECT_EQ(sglang.tokens, sglang.cache_bytes / 131072);
  EXPECT_DOUBLE_EQ(
      pool("H100", {.software = software_of("sglang"), .gpu_memory_utilization = 0.7}).fraction,
      0.7);
  const CachePool trtllm = pool("H100", {.software = software_of("trtllm")});
  EXPECT_EQ(trtllm.rule, "free_gpu_memory_fraction");
  EXPECT_EQ(trtllm.block_tokens, 32);
  EXPECT_LT(trtllm.cache_bytes, trtllm.visible_bytes - trtllm.weights_bytes);
  EXPECT_FALSE(generated("llama-3.1-8b", "H100",
                         {.prompt = 10, .execution = {.software = software_of("pytorch")}})
                   .pool);
}

// "total capacity" of PyTorch's messages, B300 and GB300 (from memory) what nvidia-smi shows.
TEST(CachePool, ErrorCorrectionTakesASixteenthWhereItIsOnAsDelivered) {
  const auto visible_gib = [](const std::string& gpu) {
    return static_cast<double>(visible_bytes(find_device(gpu))) / (1 << 30);
  };
  EXPECT_NEAR(visible_gib("L40S"), 44.4, 0.1);
  EXPECT_NEAR(visible_gib("L4"), 22.0, 0.1);
  // Printed by a program: 25,250,627,584 bytes, and 75.23 GiB, which are 0.95 of all.
  EXPECT_NEAR(visible_gib("4090"), 25'250'627'584.0 / (1 << 30), 0.01);
  EXPECT_NEAR(visible_gib("H100"), 75.23 / 0.95, 0.01);
  EXPECT_NEAR(visible_gib("A100-40GB"), 39.4, 0.1);
  EXPECT_NEAR(visible_gib("H200"), 139.8, 0.1);
  EXPECT_NEAR(visible_gib("nvidia-v100-sxm2-32gb"), 31.7, 0.1);
  EXPECT_NEAR(visible_gib("A10"), 22.0, 0.3);
  EXPECT_NEAR(visible_gib("T4"), 14.6, 0.3);
  EXPECT_NEAR(visible_gib("K80"), 11.2, 0.3);
  EXPECT_NEAR(visible_gib("P4"), 7.4, 0.1);
  EXPECT_NEAR(visible_gib("RTX A6000"), 47.5, 0.3);
  EXPECT_NEAR(visible_gib("RTX 6000 Ada"), 47.5, 0.3);
  EXPECT_LE(visible_gib("B300"), 268.6);
  EXPECT_GE(visible_gib("B300"), 264);
  EXPECT_LE(visible_gib("GB300"), 278);
  EXPECT_EQ(pool("L40S", {}).visible_bytes, visible_bytes(find_device("L40S")));
  // The driver's part is not in a slice's memory.
  const Device slice = slice_of(find_device("A100-40GB"), "1g.5gb");
  EXPECT_EQ(visible_bytes(slice), slice.memory_bytes);
}

TEST(CachePool, WhatWouldFitIsSaidAndFits) {
  Request request{.kind = RequestKind::kServe, .prompt = 1000, .output = 100};
  request.load.rate = 1;
  const GenerationForecast f = generated("llama-3.1-70b", "H100", request);
  EXPECT_FALSE(f.memory.fits);
  const std::vector<std::string> texts = warning_texts(f.warnings);
  ASSERT_FALSE(texts.empty());
  EXPECT_NE(texts[0].find("fits with --tp 2, or with --dtype fp8"), std::string::npos) << texts[0];
  request.execution.tp = 2;
  EXPECT_TRUE(generated("llama-3.1-70b", "H100", request).memory.fits);
  request.execution.tp = 1;
  request.execution.dtype = "fp8";
  EXPECT_TRUE(generated("llama-3.1-70b", "H100", request).memory.fits);
}

TEST(CachePool, RequestsMayNotBeLongerThanTheServerAccepts) {
  EXPECT_ERROR(pool("H100", {.max_model_len = 50}), kInput,
               "requests of 110 tokens are longer than `max-model-len` 50");
}

}  // namespace
}  // namespace tilecast
