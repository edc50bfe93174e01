// Work of serving software beside the kernels of a model's operators: small kernels inside of
// others, logits of the whole vocabulary, time between steps.

#include <gtest/gtest.h>

#include <algorithm>

#include "test_forecaster.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

GenerationForecast forecast_served(const std::string& model, const std::string& gpu,
                                   const Request& request) {
  return forecast_generation(forecaster(), load_model_ref(model), load_gpu_ref(gpu), request);
}

/// The kernel of the decode step whose name ends so; of several, the first.
const KernelForecast& decode_kernel(const GenerationForecast& f, std::string_view end) {
  const auto found = std::find_if(
      f.decode.kernels.begin(), f.decode.kernels.end(),
      [&](const KernelForecast& k) { return std::string_view(k.name).ends_with(end); });
  if (found == f.decode.kernels.end()) throw std::runtime_error("no kernel " + std::string(end));
  return *found;
}

Request batch_of(int64_t batch, int64_t tp, Software software = software_of("vllm")) {
  return {.kind = RequestKind::kGenerate,
          .batch = batch,
          .prompt = 128,
          .output = 4,
          .execution = {.software = software, .tp = tp}};
}

TEST(HiddenLatency, NormsAreInsideOfSmallAllReduces) {
  const auto norm = [](const char* gpu, const Request& request) {
    return decode_kernel(forecast_served("llama-3.1-8b", gpu, request), "input_layernorm");
  };
  for (const Software software :
       {software_of("vllm"), software_of("sglang"), software_of("trtllm")}) {
    const KernelForecast alone = norm("H100", batch_of(16, 1, software)),
                         inside = norm("H100", batch_of(16, 4, software));
    EXPECT_LT(alone.utilization_ratio, 0.2);
    EXPECT_EQ(inside.utilization_ratio, 1);
    EXPECT_LT(inside.latency_s, 0.2 * alone.latency_s);
    EXPECT_EQ(inside.bytes, alone.bytes);
    // It may not be hidden after all.
    EXPECT_EQ(inside.latency_s.low, inside.latency_s);
    EXPECT_GT(inside.latency_s.high, 0.9 * alone.latency_s);
  }
  // Too large a message: 1024 tokens of 8 KiB.
  EXPECT_LT(norm("H100", batch_of(1024, 4)).utilization_ratio, 1);
  // Over PCIe; and FlashInfer's kernel is not for Ampere, TensorRT-LLM's is.
  EXPECT_LT(norm("L40S", batch_of(16, 4)).utilization_ratio, 1);
  EXPECT_LT(norm("A100", batch_of(16, 4)).utilization_ratio, 1);
  EXPECT_EQ(norm("A100", batch_of(16, 4, software_of("trtllm"))).utilization_ratio, 1);
}

TEST(HiddenLatency, SharedExpertsOfFewTokensRunBesideTheOthers) {
  const auto shared = [](int64_t batch) {
    const GenerationForecast f = forecast_served("deepseek-v2-lite", "H200", batch_of(batch, 1));
    return decode_kernel(f, "shared_experts.gate_up_proj").utilization_ratio;
  };
  EXPECT_EQ(shared(16), 1);
  EXPECT_EQ(shared(256), 1);
  EXPECT_LT(shared(512), 1);
  // The sum of both follows them.
  const GenerationForecast v2 = forecast_served("deepseek-v2-lite", "H200", batch_of(16, 1));
  EXPECT_LT(decode_kernel(v2, "shared_add").utilization_ratio, 1);
  // The first layer has no experts: nothing runs beside its MLP.
  const GenerationForecast f = forecast_served("deepseek-v2-lite", "H200", batch_of(16, 1));
  EXPECT_LT(decode_kernel(f, "layers.0.mlp.gate_up_proj").utilization_ratio, 1);
}

TEST(ServedStep, EveryRankGetsTheLogitsOfTheWholeVocabulary) {
  const GenerationForecast f = forecast_served("llama-3.1-8b", "H100", batch_of(16, 4));
  const KernelForecast& gather = decode_kernel(f, "all_gather");
  EXPECT_EQ(gather.op, "all_gather");
  EXPECT_EQ(gather.shape.values[0], 16 * 128256);
  const KernelForecast one =
      decode_kernel(forecast_served("llama-3.1-8b", "H100", batch_of(16, 1)), "sample");
  const KernelForecast& four = decode_kernel(f, "sample");
  EXPECT_EQ(four.bytes, one.bytes);
  // 16 bits are read, FP32 is written and read again.
  EXPECT_NEAR(static_cast<double>(one.bytes), 16.0 * 128256 * 10, 1e3);
}

TEST(ServedStep, TimePassesBetweenSteps) {
  Request request = batch_of(16, 1);
  request.execution.step_overhead_s = 0;
  const GenerationForecast without = forecast_served("llama-3.1-8b", "H100", request);
  request.execution.step_overhead_s = 250e-6;
  const GenerationForecast with = forecast_served("llama-3.1-8b", "H100", request);
  EXPECT_NEAR(with.tpot.value - without.tpot.value, 250e-6, 1e-12);
  EXPECT_NEAR(with.ttft.value - without.ttft.value, 250e-6, 1e-12);
  request.kind = RequestKind::kServe;
  request.batch = 1;
  request.load.concurrency = 16;
  request.load.server_overhead_s = request.load.request_turn_s = 0;
  const GenerationForecast slow = forecast_served("llama-3.1-8b", "H100", request);
  request.execution.step_overhead_s = 0;
  const GenerationForecast fast = forecast_served("llama-3.1-8b", "H100", request);
  ASSERT_TRUE(slow.serving && fast.serving);
  EXPECT_GT(slow.serving->all.tpot.mean.value, fast.serving->all.tpot.mean.value + 200e-6);
  // PyTorch's kernels wait for the host in any case; serving software has a default.
  request = batch_of(16, 1, software_of("pytorch"));
  const double eager = forecast_served("llama-3.1-8b", "H100", request).tpot.value;
  request.execution.step_overhead_s = 0;
  EXPECT_EQ(forecast_served("llama-3.1-8b", "H100", request).tpot.value, eager);
}

TEST(ServedStep, TokensChooseExpertsUnevenlyUnlessDeepEpBalancesThem) {
  Request request = batch_of(16, 1);
  const auto tpot = [&] { return forecast_served("qwen3-30b-a3b", "H100", request).tpot.value; };
  const double usual = tpot();
  request.execution.skew_percent = 101;
  EXPECT_EQ(tpot(), usual);
  // Even loads let 16 tokens meet all 128 experts.
  request.execution.skew_percent = 0;
  EXPECT_GT(tpot(), 1.2 * usual);
  // A token of Mixtral chooses 2 of 8.
  const auto mixtral = [&](std::optional<int64_t> skew) {
    Request few = batch_of(16, 2);
    few.execution.skew_percent = skew;
    return forecast_served("mixtral-8x7b", "H100", few).tpot.value;
  };
  EXPECT_EQ(mixtral(std::nullopt), mixtral(0));
  request = batch_of(256, 1);
  request.execution.dp = request.parallel.ep = 8;
  request.deployment.all2all = All2All::kDeepEp;
  const double balanced = tpot();
  request.execution.skew_percent = 0;
  EXPECT_EQ(tpot(), balanced);
}

TEST(ServedStep, TheMostSequencesAreThoseOfTheSoftware) {
  const auto most = [](const char* gpu, Software software) {
    Request request{.kind = RequestKind::kServe,
                    .prompt = 64,
                    .output = 4,
                    .execution = {.software = software}};
    request.load.concurrency = 1;
    request.load.requests = 4;
    return forecast_served("llama-3.2-1b", gpu, request).serving->max_num_seqs;
  };
  EXPECT_EQ(most("H100", software_of("vllm")), 1024);
  EXPECT_EQ(most("L40S", software_of("vllm")), 256);
  EXPECT_EQ(most("A100", software_of("vllm")), 256);
  EXPECT_EQ(most("H100", software_of("sglang")), 2048);
  EXPECT_EQ(most("H100", software_of("trtllm")), 2048);
}

}  // namespace
}  // namespace tilecast
