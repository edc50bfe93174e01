#include <gtest/gtest.h>

#include "software/software.h"
#include "test_forecaster.h"
#include "tilecast/forecast.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// Whatever the weights say: the warning follows from the two forecasts.
TEST(SlowerPrecision, IsAWarningWhereATimeIsNoShorterThanIn16Bits) {
  const ModelRef model = load_model_ref("llama-3.1-8b");
  int warned = 0, silent = 0;
  for (const char* name : {"H100", "B200"}) {
    const GpuRef gpu = load_gpu_ref(name);
    Request request{.kind = RequestKind::kGenerate, .batch = 64};
    request.prompt = 1024;
    request.output = 32;
    const GenerationForecast own = forecast_generation(forecaster(), model, gpu, request);
    EXPECT_EQ(std::get<GenerationForecast>(ask(forecaster(), model, gpu, request)).warnings.size(),
              own.warnings.size())
        << "16 bits";
    for (const char* dtype : {"fp8", "int4_wo"}) {
      request.execution.dtype = dtype;
      const GenerationForecast low = forecast_generation(forecaster(), model, gpu, request);
      const auto checked = std::get<GenerationForecast>(ask(forecaster(), model, gpu, request));
      const bool slower = low.ttft.value >= own.ttft.value || low.tpot.value >= own.tpot.value;
      ++(slower ? warned : silent);
      ASSERT_EQ(checked.warnings.size(), low.warnings.size() + (slower ? 1 : 0))
          << name << " " << dtype;
      if (!slower) continue;
      EXPECT_EQ(checked.warnings.back().code, WarningCode::kSlowerPrecision);
      EXPECT_NE(warning_text(checked.warnings.back())
                    .find(std::string("no shorter in ") + dtype + " than in bf16: time "),
                std::string::npos);
    }
  }
  EXPECT_GT(warned, 0) << "weights of 4 bits are converted before large products";
  EXPECT_GT(silent, 0) << "FP8 of H100 multiplies twice as fast";
}

/// SGLang converts a latent cache in FP8 to BF16 on Hopper before it attends.
TEST(SlowerPrecision, OfTheCacheIsAWarningToo) {
  const ModelRef model = load_model_ref("deepseek-v3");
  const GpuRef gpu = load_gpu_ref("H200");
  Request request{.kind = RequestKind::kGenerate, .batch = 64};
  request.prompt = 4096;
  request.output = 32;
  request.execution.tp = 8;
  int warned = 0, silent = 0;
  for (const char* software : {"sglang", "trtllm"}) {
    request.execution.software = parse_software(software, "");
    request.execution.kv_dtype.clear();
    const double own_s = forecast_generation(forecaster(), model, gpu, request).tpot.value;
    request.execution.kv_dtype = "fp8";
    const auto checked = std::get<GenerationForecast>(ask(forecaster(), model, gpu, request));
    const bool slower = checked.tpot.value > 1.02 * own_s;
    ++(slower ? warned : silent);
    if (!slower) continue;
    ASSERT_FALSE(checked.warnings.empty());
    EXPECT_EQ(checked.warnings.back().code, WarningCode::kSlowerPrecision);
    EXPECT_NE(warning_text(checked.warnings.back())
                  .find("no shorter with a cache in fp8 than in bf16: time "),
              std::string::npos)
        << warning_text(checked.warnings.back());
  }
  EXPECT_EQ(warned, 1) << "SGLang";
  EXPECT_EQ(silent, 1) << "TensorRT-LLM";
}

}  // namespace
}  // namespace tilecast
