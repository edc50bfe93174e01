#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class SharingFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    write_file(folder_.path() / name, text);
    return (folder_.path() / name).string();
  }

  static Job job(const std::string& name, const std::string& model, int64_t batch) {
    Job job{.name = name, .model = load_model_ref(model)};
    job.request.mode = Mode::kTraining;
    job.request.batch = batch;
    job.bounds.loader_s = 0;
    return job;
  }

  const std::vector<Job> jobs_ = {job("resnet 8", "resnet-50", 8),
                                  job("resnet 32", "resnet-50", 32), job("bert", "bert-base", 2),
                                  job("alone", "gpt2", 1)};
  const GpuRef gpu_ = load_gpu_ref("V100");
  const TemporaryFolder folder_;
};

TEST_F(SharingFiles, PairsThatAreWrittenAreRead) {
  const PairCalibrationOptions options = {
      .pairs = file("pairs.csv",
                    "job,partner,relative_speed,partner_relative_speed\n"
                    "resnet 8,bert,0.3,0.8\nbert,bert,0.5,0.5\n"),
      .output = folder_.path() / "pairs.json",
      .how = ShareHow::kMps};
  const PairCalibration result = calibrate_pairs(forecaster(), gpu_, jobs_, options);
  EXPECT_EQ(result.pairs, 2);
  ASSERT_EQ(result.jobs.size(), 3u) << "gpt2 is in no pair, nor is its model";
  EXPECT_EQ(result.jobs[1].pairs, 0) << "resnet 32 learns from resnet 8";
  const PairEffects effects = load_pair_effects(options.output, gpu_, options.how);
  ASSERT_EQ(effects.effects.size(), 3u);
  EXPECT_EQ(effects.find("alone"), nullptr);
  for (const PairEffectRow& row : result.jobs) {
    ASSERT_NE(effects.find(row.job), nullptr);
    EXPECT_DOUBLE_EQ(std::exp(effects.find(row.job)->slowed_log), row.slowed_ratio);
    EXPECT_DOUBLE_EQ(std::exp(effects.find(row.job)->slows_log), row.slows_ratio);
  }
  EXPECT_NE(error_of([&] { load_pair_effects(options.output, load_gpu_ref("A100"), options.how); }),
            "");
  EXPECT_NE(error_of([&] { load_pair_effects(options.output, gpu_, ShareHow::kTimeSlice); }), "");

  // The effects move the speeds towards what was measured.
  const std::vector<Job> pair = {jobs_[0], jobs_[2]};
  const ShareForecast law = share_gpu(forecaster(), gpu_, {.jobs = pair, .how = ShareHow::kMps});
  const ShareForecast fitted =
      share_gpu(forecaster(), gpu_, {.jobs = pair, .how = ShareHow::kMps, .pairs = effects});
  const auto distance = [](const ShareForecast& f, size_t i, double measured) {
    return std::abs(std::log(f.jobs[i].relative_speed.value / measured));
  };
  EXPECT_LT(distance(fitted, 0, 0.3), distance(law, 0, 0.3));
  EXPECT_LT(distance(fitted, 1, 0.8), distance(law, 1, 0.8) + 1e-12);
}

TEST_F(SharingFiles, BrokenFilesOfPairsAreRefused) {
  const auto message = [&](const std::string& text) {
    return error_of([&] { load_pair_effects(file("x.json", text), gpu_, ShareHow::kMps); });
  };
  const std::string head =
      R"("gpu": "nvidia-v100-sxm2-32gb", "how": "mps", "spread_log": 0.1, "effects": )";
  EXPECT_EQ(message(R"({"version": 1, )" + head + "[]}"), "");
  EXPECT_NE(message(R"({"version": 2, )" + head + "[]}").find("it is not of version 1"),
            std::string::npos);
  EXPECT_NE(message(R"({"version": 1, )" + head + "3}").find("is no list"), std::string::npos);
  EXPECT_NE(
      message(R"({"version": 1, )" + head + R"([{"job": "a", "slowed_log": 99, "slows_log": 0}]})")
          .find("slowed_log is out of range: 99"),
      std::string::npos);
  EXPECT_NE(message("[1]").find("it has no \"effects\""), std::string::npos);
}

TEST_F(SharingFiles, StepsOfTheTableMayBeSeveralOfTheJob) {
  // 10 steps of the job in one of the table: the same share of the GPU as with 10 times the speed.
  const std::string head =
      "gpu,model,batch,alone_steps_s,partner_model,partner_batch,partner_alone_steps_s,"
      "packed_steps_s,partner_packed_steps_s\n";
  const auto forecast = [&](double speed, double steps) {
    const std::string path =
        file("p.csv", head + "V100,resnet,8," + std::to_string(speed) + ",resnet,8," +
                          std::to_string(speed) + "," + std::to_string(speed / 2) + "," +
                          std::to_string(speed / 2) + "\n");
    SharingTable table;
    table.jobs.push_back({.job = jobs_[0], .steps = steps});
    table.how[""] = ShareHow::kMps;
    return evaluate_sharing(forecaster(), path, table).points.at(0).forecast.value;
  };
  EXPECT_DOUBLE_EQ(forecast(0.8, 10), forecast(8, 1));
  EXPECT_GT(forecast(0.8, 1), 0);
}

}  // namespace
}  // namespace tilecast
