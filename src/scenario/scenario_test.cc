#include "scenario/scenario.h"

#include <gtest/gtest.h>

#include <set>

#include "test_forecaster.h"

namespace tilecast {
namespace {

std::string_view name_of(const std::string& model, const DeviceRef& device,
                         const Request& request) {
  const ModelRef ref = load_model_ref(model);
  return scenario_of({forecaster(), ref, device, request}).name;
}

TEST(Scenarios, EachQuestionHasOne) {
  const DeviceRef gpu = load_device_ref("H100");
  Request pass, ranks{.mode = Mode::kTraining}, generate{.kind = RequestKind::kGenerate},
      serve{.kind = RequestKind::kServe};
  ranks.execution.dp = 2;
  EXPECT_EQ(name_of("gpt2", gpu, pass), "pass");
  EXPECT_EQ(name_of("gpt2", gpu, ranks), "ranks");
  EXPECT_EQ(name_of("dlrm_mlperf", gpu, ranks), "recommendation");
  EXPECT_EQ(name_of("dlrm_mlperf", gpu, pass), "pass");
  EXPECT_EQ(name_of("gpt2", gpu, generate), "generation");
  EXPECT_EQ(name_of("gpt2", gpu, serve), "server");
  EXPECT_EQ(name_of("resnet-50", load_device_ref("gemmini"), pass), "accelerator");
}

TEST(Scenarios, NamesDifferAndChecksRefuseOtherKinds) {
  std::set<std::string_view> names;
  for (const Scenario& scenario : scenarios()) {
    EXPECT_TRUE(names.insert(scenario.name).second) << scenario.name;
    EXPECT_FALSE(scenario.what.empty()) << scenario.name;
    EXPECT_NE(scenario.kinds, 0) << scenario.name;
  }
  const Request training{.mode = Mode::kTraining};
  EXPECT_THROW(ask(forecaster(), load_model_ref("resnet-50"), load_device_ref("gemmini"), training),
               Error);
}

TEST(Scenarios, AskGivesWhatTheOtherFunctionsGive) {
  const ModelRef model = load_model_ref("gpt2");
  const GpuRef gpu = load_gpu_ref("H100");
  const Request pass{.batch = 4};
  EXPECT_EQ(std::get<Forecast>(ask(forecaster(), model, gpu, pass)).latency_s,
            forecaster().forecast(model, gpu, pass).latency_s);
  const Request generate{.kind = RequestKind::kGenerate, .prompt = 64, .output = 8};
  EXPECT_EQ(std::get<GenerationForecast>(ask(forecaster(), model, gpu, generate)).ttft.value,
            forecast_generation(forecaster(), model, gpu, generate).ttft.value);
}

}  // namespace
}  // namespace tilecast
