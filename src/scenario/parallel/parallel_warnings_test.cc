// Warnings of training over several ranks.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/view.h"
#include "training_steps.h"

namespace tilecast {
namespace {

std::set<std::string> codes_of(const Forecast& f) {
  std::set<std::string> codes;
  for (const Warning& warning : f.warnings) codes.emplace(warning_code_name(warning.code));
  return codes;
}

TEST(Parallel, SeveralGpusHaveTheWarningsOfOne) {
  struct Step {
    const char *model, *gpu, *dtype;
    int64_t batch;
    std::set<std::string> codes;  ///< of one GPU, at least
  };
  for (const Step& step :
       {Step{"resnet-50", "MI300X", "amp", 64, {"unmeasured_operators", "extrapolated"}},
        Step{"gpt2", "B200", "bf16", 8, {"extrapolated"}},
        Step{"bert-base", "H100", "bf16", 1, {"host_wait"}}}) {
    Request request = as_published({.batch = step.batch, .mode = Mode::kTraining});
    request.execution.dtype = step.dtype;
    const auto forecast_of = [&] {
      return forecaster().forecast(load_model_ref(step.model), load_gpu_ref(step.gpu), request);
    };
    const Forecast alone = forecast_of();
    const std::set<std::string> one = codes_of(alone);
    for (const std::string& code : step.codes) EXPECT_TRUE(one.contains(code)) << code;
    request.batch *= 8;
    request.execution.dp = 8;
    const Forecast many = forecast_of();
    for (const std::string& code : one)
      EXPECT_TRUE(codes_of(many).contains(code)) << step.model << " " << code;
    // The same kernels, so the same shares of their time.
    for (const Warning& a : alone.warnings) {
      for (const Warning& b : many.warnings) {
        if (a.code == b.code && a.code != WarningCode::kHostWait) {
          EXPECT_NEAR(a.share, b.share, 1e-6);
        }
      }
    }
  }
}

TEST(Parallel, PcieOfOneMeasuredServerIsNamed) {
  Request request = training(8);
  request.execution.tp = 8;
  const auto on = [&](const char* gpu) {
    return codes_of(
        forecaster().forecast(load_model_ref("llama-3.2-1b"), load_gpu_ref(gpu), request));
  };
  EXPECT_TRUE(on("L40S").contains("one_measured_server"));
  EXPECT_TRUE(on("MI210").contains("unmeasured_links"));
  EXPECT_FALSE(on("H100").contains("one_measured_server"));
  // A cluster file has the rates of its owner's server.
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "cluster.json").string();
  std::ofstream(path) << cluster_text("l40s-pcie");
  request.parallel.cluster = path;
  EXPECT_FALSE(on("L40S").contains("one_measured_server"));
}

TEST(Parallel, MemoryThatHardlySufficesIsSaid) {
  bool seen = false;
  for (int64_t batch = 2; batch <= 256; batch += 2) {
    Request request = training(batch);
    request.execution.dp = 2;
    request.execution.dtype = "bf16";
    request.execution.attention = AttentionKind::kFlash;
    const Forecast f = forecast(request);
    const bool tight = codes_of(f).contains("tight_memory");
    seen = seen || tight;
    const double share =
        static_cast<double>(f.memory.margin_bytes()) / static_cast<double>(f.memory.usable_bytes);
    EXPECT_EQ(tight, share >= 0 && share < 1 - 1 / 1.1) << batch;
    if (!f.memory.fits) break;
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace tilecast
