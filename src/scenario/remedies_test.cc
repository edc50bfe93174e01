#include "scenario/remedies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "passes.h"
#include "request/access.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

TEST(Remedies, ChangesThatHelpOnlyBesideOthersAreTriedInPairs) {
  // The optimizer step is the peak: checkpointing alone saves nothing, and ZeRO alone not enough.
  Request request = as_published({.batch = 16, .mode = Mode::kTraining, .seq = 2048});
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
  const PassMemory memory = forecast("llama-3.1-70b", "H100", changed).memory;
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
  const Request request = as_published(
      {.batch = 8, .mode = Mode::kTraining, .seq = 2048, .optimizer = Optimizer::kAdamW});
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
  const Request request =
      as_published({.batch = 32,
                    .mode = Mode::kTraining,
                    .seq = 2048,
                    .optimizer = Optimizer::kAdamW,
                    .execution = {.dtype = "bf16", .attention = AttentionKind::kFlash, .dp = 8}});
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

}  // namespace
}  // namespace tilecast
