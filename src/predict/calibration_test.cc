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
  Calibration calibration{.gpu = "x", .signature = signature_of(find_device("T4")), .nets = {}};
  CalibrationNet& net = calibration.nets[static_cast<size_t>(NetKind::kSoftmax)];
  const size_t width = feature_names(NetKind::kSoftmax).size();
  net = {.rows = 2, .offset = 0.25, .length = 2, .weights = {1, -1}};
  net.points.assign(2 * width, 0.5f);
  const std::string text = serialize_calibration(calibration);
  EXPECT_EQ(parse_calibration(text, "c.json"), calibration);
  const std::vector<float> x(width, 0.5f);
  EXPECT_NEAR(net.at(x.data(), width), 0.25, 1e-6);  // the two points cancel
  EXPECT_ERROR(parse_calibration("{}", "c.json"), kInput, "not a usable calibration");
  std::string infinite = text;
  infinite.replace(infinite.find("0.25"), 4, "1e400");
  EXPECT_THROW(parse_calibration(infinite, "c.json"), Error);
  std::string broken = text;
  broken.replace(broken.find("\"rows\":2"), 8, "\"rows\":3");
  EXPECT_ERROR(parse_calibration(broken, "c.json"), kInput, "'softmax' has 3 rows but 2 weights");
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
      .gpu = "L40S", .signature = signature_of(find_device("L40S")), .nets = {}};
  calibration.nets[static_cast<size_t>(NetKind::kSoftmax)] = {
      .rows = 1,
      .offset = 1,
      .points = std::vector<float>(feature_names(NetKind::kSoftmax).size()),
      .weights = {0}};
  weights.calibration = calibration;
  EXPECT_NEAR(seconds("L40S") / before, std::exp(1), 1e-5) << "added to the logarithm";
  EXPECT_EQ(seconds("P4"), other);
}

}  // namespace
}  // namespace tilecast
