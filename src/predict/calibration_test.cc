#include "predict/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "devices/registry.h"
#include "predict/predictor.h"
#include "random_kernels.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(CalibrationFile, RoundTripsAndRefusesBrokenOnes) {
  Calibration calibration{.gpu = "x", .signature = signature_of(find_device("T4")), .models = {}};
  KindCalibration& model = calibration.models[static_cast<size_t>(KernelKind::kSoftmax)];
  const size_t width = feature_names(KernelKind::kSoftmax).size();
  const Combination bf16, fp32{.dtype = DType::kFp32, .kv_dtype = DType::kFp32};
  model = {.rows = 2,
           .law = {{0.5, 0, -0.125}},
           .offset = 0.25,
           .groups = {{fp32, 2.5}},
           .length = 2,
           .weights = {1, -1},
           .group_of_row = {0, 0},
           .other_group_share = 0.5};
  model.points.assign(2 * width, 0.5f);
  const std::string text = serialize_calibration(calibration);
  EXPECT_EQ(parse_calibration(text, "c.json"), calibration);
  const std::vector<float> x(width, 0.5f);
  EXPECT_NEAR(model.at(x.data(), width, bf16), 0.25, 1e-6);  // the two points cancel
  EXPECT_NEAR(model.at(x.data(), width, fp32), 2.75, 1e-6);  // and its group's offset
  EXPECT_ERROR(parse_calibration("{}", "c.json"), kInput, "not a usable calibration");
  std::string infinite = text;
  infinite.replace(infinite.find("0.25"), 4, "1e400");
  EXPECT_THROW(parse_calibration(infinite, "c.json"), Error);
  std::string foreign = text;
  foreign.replace(foreign.find("fp32"), 4, "fp33");
  EXPECT_ERROR(parse_calibration(foreign, "c.json"), kInput, "software or precision is unknown");
  std::string broken = text;
  broken.replace(broken.find("\"rows\":2"), 8, "\"rows\":3");
  EXPECT_ERROR(parse_calibration(broken, "c.json"), kInput, "'softmax' has 3 rows but 2 weights");
  std::string homeless = text;
  homeless.replace(homeless.find("\"group_of_row\":[0,0]"), 20, "\"group_of_row\":[0,1]");
  EXPECT_ERROR(parse_calibration(homeless, "c.json"), kInput, "'softmax' has rows of no group");
}

TEST(CalibrationFile, SharpensItsDeviceAndLeavesOthersAlone) {
  Weights weights = load_weights("");
  const Kernel kernel =
      kernels_of_sizes("softmax", DType::kFp32, {{"rows", 65536}, {"columns", 1024}})[0];
  const auto seconds = [&](const char* gpu) {
    KernelTime time;
    make_learned_predictor(weights)->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
    return time.seconds;
  };
  const double before = seconds("L40S"), other = seconds("P4");
  Calibration calibration{
      .gpu = "L40S", .signature = signature_of(find_device("L40S")), .models = {}};
  calibration.models[static_cast<size_t>(KernelKind::kSoftmax)] = {
      .rows = 1,
      .offset = 1,
      .groups = {{}},
      .points = std::vector<float>(feature_names(KernelKind::kSoftmax).size()),
      .weights = {0},
      .group_of_row = {0}};
  weights.calibration = calibration;
  EXPECT_NEAR(seconds("L40S") / before, std::exp(1), 1e-5) << "added to the logarithm";
  EXPECT_EQ(seconds("P4"), other);
}

TEST(CalibrationFile, MovesTheLawsConstantsOfItsDevice) {
  // DRAM at half of its reached bandwidth: kernels that stream take twice as long but for their
  // start, those that multiply do not.
  Weights weights = load_weights("");
  const auto seconds = [&](const Kernel& kernel, const char* gpu) {
    KernelTime time;
    make_learned_predictor(weights)->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
    return time.seconds;
  };
  const Kernel add =
      kernels_of_sizes("add", DType::kFp32, {{"rows", 1 << 14}, {"columns", 1 << 14}})[0];
  const Kernel product =
      kernels_of_sizes("linear", DType::kFp32, {{"m", 8192}, {"n", 8192}, {"k", 8192}})[0];
  const double streams = seconds(add, "L40S"), multiplies = seconds(product, "L40S");
  const double other = seconds(add, "P4");
  Calibration calibration{
      .gpu = "L40S", .signature = signature_of(find_device("L40S")), .models = {}};
  for (const KernelKind kind : {KernelKind::kElementwise, KernelKind::kMatmul}) {
    KindCalibration& model = calibration.models[static_cast<size_t>(kind)];
    model = {.rows = 1,
             .groups = {{}},
             .points = std::vector<float>(feature_names(kind).size()),
             .weights = {0},
             .group_of_row = {0}};
    model.law.logs[static_cast<size_t>(LawConstant::kDram)] = std::log(2);
  }
  weights.calibration = calibration;
  EXPECT_NEAR(seconds(add, "L40S") / streams, 2, 0.01);
  EXPECT_NEAR(seconds(product, "L40S") / multiplies, 1, 0.02);
  EXPECT_EQ(seconds(add, "P4"), other);
}

}  // namespace
}  // namespace tilecast
