// Work of text generation where the experts have different loads.

#include <gtest/gtest.h>

#include "test_forecaster.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

TEST(MeanWork, OfRanksThatShareExpertsIsThatOfAnEvenLoad) {
  const auto forecast = [](int64_t skew, int64_t ep, int64_t workers) {
    Request request{.kind = RequestKind::kGenerate, .batch = 64, .prompt = 256, .output = 8};
    request.execution.tp = 4;
    request.parallel.ep = ep;
    request.execution.skew_percent = skew;
    if (workers > 0) {
      request.kind = RequestKind::kServe;
      request.batch = 1;
      request.load.concurrency = 4;
      request.deployment.prefill = {.workers = workers, .tp = 4, .ep = ep};
    }
    return forecast_generation(forecaster(), load_model_ref("deepseek-v2-lite"),
                               load_gpu_ref("H100"), request);
  };
  const auto of_experts = [](const GenerationForecast& f) {
    double sum = 0;
    for (const KernelForecast& k : f.kernels)
      if (k.op == "experts") sum += static_cast<double>(k.flops) * static_cast<double>(k.count);
    return sum;
  };
  for (const int64_t workers : {0, 1}) {
    const GenerationForecast even = forecast(0, 4, workers), skewed = forecast(150, 4, workers);
    EXPECT_EQ(skewed.flops, even.flops);
    EXPECT_EQ(skewed.bytes, even.bytes);
    // The kernels belong to the busiest rank.
    EXPECT_GT(of_experts(skewed), 1.2 * of_experts(even));
    EXPECT_GT(skewed.request.value, even.request.value);
  }
}

}  // namespace
}  // namespace tilecast
