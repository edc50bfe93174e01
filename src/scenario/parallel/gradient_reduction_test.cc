// Reductions of data-parallel ranks, in all precisions and with fused kernels.

#include <gtest/gtest.h>

#include "test_forecaster.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

TEST(GradientReductions, AreThoseOfAllWeightsAlsoWhereKernelsAreFused) {
  for (const std::string dtype : {"fp32", "amp", "bf16"}) {
    for (const MainParams main : {MainParams::kAsModel, MainParams::kFp32}) {
      const auto communication_s = [&](Fusion fusion, const std::string& model) {
        Request request{.batch = 16, .mode = Mode::kTraining, .seq = 128};
        request.optimizer = Optimizer::kAdamW;
        request.execution.dtype = dtype;
        request.execution.fusion = fusion;
        request.execution.dp = 8;
        request.parallel.overlap_grad_reduce = false;
        request.parallel.main_params = main;
        return forecaster()
            .forecast(load_model_ref(model), load_gpu_ref("H100"), request)
            .parallel->communication_s;
      };
      for (const std::string model : {"llama-3.2-1b", "gpt2_large"}) {
        const double fused = communication_s(Fusion::kPointwise, model),
                     plain = communication_s(Fusion::kNone, model);
        EXPECT_GT(plain, 0);
        EXPECT_NEAR(fused / plain, 1, 1e-9) << model << " " << dtype;
      }
    }
  }
}

TEST(GradientReductions, OfAutocastAreFp32OnceWhateverTheMainParameters) {
  const auto communication_s = [](const std::string& dtype, MainParams main) {
    Request request{.batch = 16, .mode = Mode::kTraining, .seq = 128};
    request.optimizer = Optimizer::kAdamW;
    request.execution.dtype = dtype;
    request.execution.dp = 8;
    request.parallel.overlap_grad_reduce = false;
    request.parallel.main_params = main;
    return forecaster()
        .forecast(load_model_ref("llama-3.2-1b"), load_gpu_ref("H100"), request)
        .parallel->communication_s;
  };
  const double fp32 = communication_s("fp32", MainParams::kAsModel);
  EXPECT_DOUBLE_EQ(communication_s("amp", MainParams::kAsModel), fp32);
  EXPECT_DOUBLE_EQ(communication_s("amp", MainParams::kFp32), fp32);
  EXPECT_DOUBLE_EQ(communication_s("bf16", MainParams::kFp32) / fp32, 1);
  EXPECT_LT(communication_s("bf16", MainParams::kAsModel), 0.6 * fp32);
}

}  // namespace
}  // namespace tilecast
