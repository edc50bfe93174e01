// Memory of training over several ranks.

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "training_steps.h"

namespace tilecast {
namespace {

/// DistributedDataParallel's buckets are in memory beside the gradients.
TEST(Parallel, GradientsAndBucketsAreWhatIsThereAtThePeak) {
  for (const int64_t dp : {1, 2}) {
    Request request = training(8);
    request.execution.dp = dp;
    request.execution.microbatches = 2;
    const PassMemory m = forecast(request).memory;
    EXPECT_EQ(m.gradients_bytes + m.gradient_buckets_bytes, m.at_peak.gradients_bytes) << dp;
    EXPECT_EQ(m.gradient_buckets_bytes > 0, dp > 1);
  }
}

TEST(Parallel, ZeroTakesLessMemoryStepByStep) {
  Request request = training(8);
  request.execution.dp = 8;
  request.optimizer = Optimizer::kAdamW;
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const Zero zero : {Zero::kNone, Zero::kOptimizer, Zero::kGradients, Zero::kParameters}) {
    request.parallel.zero = zero;
    const Forecast f = forecast(request);
    EXPECT_LT(f.memory.peak_bytes, before) << static_cast<int>(zero);
    before = f.memory.peak_bytes;
  }
}

// Megatron-LM, docs/source/api-guide/dist_optimizer.md: 18 and 6 + 12/d bytes a parameter in bf16,
// 20 and 4 + 16/d in fp16, 16 and 8 + 8/d in fp32, for Adam.
TEST(Parallel, MainCopiesTakeTheBytesThatMegatronStates) {
  struct Row {
    const char* dtype;
    double whole, kept, divided;
  };
  for (const Row& row : {Row{"bf16", 18, 6, 12}, Row{"fp16", 20, 4, 16}, Row{"fp32", 16, 8, 8}}) {
    for (const int64_t dp : {1, 2, 8}) {
      for (const Zero zero : {Zero::kNone, Zero::kOptimizer}) {
        Request request = training(8);
        request.execution.dp = dp;
        request.execution.dtype = row.dtype;
        request.optimizer = Optimizer::kAdam;
        request.parallel.main_params = MainParams::kFp32;
        request.parallel.zero = zero;
        const PassMemory memory = forecast(request).memory;
        const double bytes = static_cast<double>(memory.weights_bytes + memory.gradients_bytes +
                                                 memory.optimizer_bytes);
        const double expected =
            zero == Zero::kNone ? row.whole : row.kept + row.divided / static_cast<double>(dp);
        const auto parameters = static_cast<double>(forecast(request).parameters);
        EXPECT_NEAR(bytes / parameters, expected, 1e-3)
            << row.dtype << " dp " << dp << " zero " << static_cast<int>(zero);
        // The buffer stays through the step.
        const double gradients = std::string(row.dtype) == "fp16" ? 2 : 4;
        EXPECT_NEAR(static_cast<double>(memory.at_peak.gradients_bytes) / parameters, gradients,
                    0.01)
            << row.dtype << " dp " << dp;
      }
    }
  }
}

/// Bytes that each micro-batch in flight keeps on a stage.
int64_t saved_bytes(Request request, size_t stage, const std::string& model = "gpt2_large") {
  request.parallel.schedule = PipelineSchedule::kGPipe;
  request.parallel.micro_batch_size = 1;
  request.execution.attention = AttentionKind::kFlash;
  const auto activations = [&](int64_t batch) {
    request.batch = batch;
    return forecast(request, model).parallel->stages[stage].memory.activations_bytes;
  };
  return (activations(4) - activations(2)) / 2;
}

TEST(Parallel, SequenceParallelRanksKeepTheirPartAlone) {
  Request request = training();
  const int64_t whole = saved_bytes(request, 0);
  request.execution.tp = 4;
  request.parallel.sequence_parallel = true;
  // They keep nothing of what they gather. The rest has no parts: ids, 512-byte blocks.
  EXPECT_LE(static_cast<double>(saved_bytes(request, 0)), static_cast<double>(whole) / 4 * 1.01);
}

/// Bytes kept for each layer and micro-batch, in units of sequence × hidden size / tensor-parallel
/// ranks.
double kept_of_a_layer(const std::string& model, int64_t layers, int64_t hidden) {
  Request request = training();
  request.execution.dtype = "bf16";
  request.execution.fusion = Fusion::kPointwise;
  request.execution.pp = 4;
  request.execution.tp = 4;
  request.parallel.cluster = "dgx-a100";
  request.parallel.sequence_parallel = true;
  const int64_t stages = request.execution.pp, ranks = request.execution.tp;
  return static_cast<double>(saved_bytes(request, 1, model) * stages * ranks) /
         static_cast<double>(layers * 1024 * hidden);
}

/// The count of Korthikanti et al. 2022 (tensor and sequence parallelism, the core of attention
/// computed again) is 34 bytes: inputs of two norms 4, of the products after them 4, queries, keys
/// and values 6, the result of attention 2, masks of two dropouts 2, the activation's input 8 and
/// output 8. FlashAttention keeps a number for each row and head beside that.
TEST(Parallel, ALayerOfGptKeepsWhatMegatronsAuthorsCount) {
  EXPECT_NEAR(kept_of_a_layer("gpt3_67", 32, 4096), 34, 0.34);
}

/// With fused norms and activations in 16 bits: the inputs of two norms (4 bytes) and of the
/// products after them (4), queries (2), keys and values (1), the result of attention (2), gate, up
/// and their product (3 x 2 x 3.5).
TEST(Parallel, ALayerOfLlamaKeepsNothingInFp32) {
  EXPECT_NEAR(kept_of_a_layer("llama-3-8b", 32, 4096), 34, 0.34);
}

/// DeepSeek-V2-Lite: queries (16 x 192) and keys and values (16 x 256, from 512) of a token.
TEST(Parallel, LatentProjectionsAreComputedAgainAndNotKept) {
  Request request = training();
  request.batch = 1;
  request.execution.dtype = "bf16";
  request.execution.software = software_of("megatron");
  request.execution.attention = AttentionKind::kFlash;
  const Forecast kept = forecast(request, "deepseek-v2-lite");
  const int64_t kept_bytes = saved_bytes(request, 0, "deepseek-v2-lite");
  request.checkpointing = Checkpointing::kSelective;
  request.recompute_modules = "mla_up_proj";
  const Forecast again = forecast(request, "deepseek-v2-lite");
  const int64_t again_bytes = saved_bytes(request, 0, "deepseek-v2-lite");
  constexpr double kTokens = 1024, kLayers = 27;
  constexpr double kUp = 2.0 * (2048 * 16 * 192 + 512 * 16 * 256);
  EXPECT_NEAR(static_cast<double>(again.model_flops) / static_cast<double>(kept.model_flops), 1,
              1e-4);
  // Rotary positions and copies are little beside the products.
  EXPECT_NEAR(static_cast<double>(again.flops - kept.flops) / (kTokens * kLayers * kUp), 1, 0.01);
  // Queries and keys in 16 bits; values are views of what is computed with the keys.
  constexpr double kBytes = 2.0 * 16 * (192 + 192 + 256);
  EXPECT_NEAR(static_cast<double>(kept_bytes - again_bytes) / (kBytes * kTokens * kLayers), 1,
              0.02);
  EXPECT_THROW(forecast(request, "llama-3.2-1b"), Error);
}

/// The second run of attention's core reads queries, keys and values that are made again.
TEST(Parallel, LatentProjectionsAreNotKeptForTheSecondRunOfAttention) {
  Request request = training();
  request.execution.dtype = "bf16";
  request.execution.software = software_of("megatron");
  request.execution.attention = AttentionKind::kEager;
  request.checkpointing = Checkpointing::kSelective;
  const auto activations = [&](const char* modules, int64_t batch) {
    request.recompute_modules = modules;
    request.batch = batch;
    return forecast(request, "deepseek-v2-lite").memory.activations_bytes;
  };
  const auto kept = [&](const char* modules) {
    return static_cast<double>(activations(modules, 2) - activations(modules, 1));
  };
  constexpr double kTokens = 1024, kLayers = 27, kBytes = 2.0 * 16 * (192 + 192 + 256);
  EXPECT_NEAR((kept("core_attn") - kept("core_attn,mla_up_proj")) / (kBytes * kTokens * kLayers), 1,
              0.01);
}

TEST(Parallel, AStageKeepsTheInputsOfCheckpointedLayersAlone) {
  Request request = training();
  request.execution.pp = 3;
  request.checkpointing = Checkpointing::kFull;
  constexpr int64_t kLayers = 12, kHidden = 1280;  // of gpt2_large on the middle stage
  EXPECT_EQ(saved_bytes(request, 1), kLayers * 1024 * kHidden * 4);
}

TEST(Parallel, RanksTogetherHoldOneModelWhereExpertsAreDividedTwice) {
  // An expert has dp / ep replicas, which ZeRO divides: with ep of 8, two.
  for (const MainParams main_params : {MainParams::kAsModel, MainParams::kFp32}) {
    for (const Zero zero : {Zero::kOptimizer, Zero::kGradients, Zero::kParameters}) {
      for (const int64_t ep : {1, 2, 8}) {
        Request request{
            .batch = 16,
            .mode = Mode::kTraining,
            .seq = 512,
            .optimizer = Optimizer::kAdamW,
            .execution = {.dtype = "bf16", .attention = AttentionKind::kFlash, .dp = 16}};
        request.parallel.zero = zero;
        request.parallel.main_params = main_params;
        request.parallel.ep = ep;
        const bool wide = main_params == MainParams::kFp32;
        const Forecast f =
            forecaster().forecast(load_model_ref("mixtral-8x7b"), load_gpu_ref("H100"), request);
        const double parameters = 46.7028e9, shares = 16;
        const auto held = [&](int64_t bytes) {
          return shares * static_cast<double>(bytes) / parameters;
        };
        EXPECT_NEAR(held(f.memory.optimizer_bytes), wide ? 12 : 4, 0.01) << ep;
        if (zero >= Zero::kGradients) {
          EXPECT_NEAR(held(f.memory.gradients_bytes), wide ? 4 : 2, 0.01) << ep;
        }
        if (zero == Zero::kParameters) {
          EXPECT_NEAR(held(f.memory.weights_bytes), 2, 0.01) << ep;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilecast
