#include "train/calibration_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/predictor.h"
#include "test_support.h"
#include "train/dataset.h"

namespace tilecast {
namespace {

TEST(Calibrate, LearnsWhatAFewRowsShow) {
  // A device that is 1.6 times slower than forecast, with 1 % of noise, seen through 60 rows.
  const Weights weights = load_weights("");
  const Device device = find_device("L40S");
  Rng rng(5);
  std::vector<TrainingRow> rows;
  std::vector<Kernel> kernels;
  for (int i = 0; i < 120; ++i)
    kernels.push_back(kernels_of_sizes("linear", DType::kFp32,
                                       {{"m", 64 + static_cast<int64_t>(rng.below(4096))},
                                        {"n", 64 + static_cast<int64_t>(rng.below(4096))},
                                        {"k", 64 + static_cast<int64_t>(rng.below(4096))}})[0]);
  std::vector<KernelTime> before(kernels.size()), after(kernels.size());
  make_learned_predictor(weights)->predict(kernels, device, {}, before);
  for (size_t i = 0; i < 60; ++i)
    rows.push_back(
        {.kernel = kernels[i], .seconds = before[i].seconds * 1.6 * (0.99 + 0.02 * rng.uniform())});
  const Calibration calibration = fit_calibration(weights, device, rows);
  const CalibrationNet& net = calibration.net(NetKind::kMatmul);
  EXPECT_EQ(net.rows, 60u);
  EXPECT_NEAR(net.error_before_percent, 37.5, 1);
  EXPECT_LT(net.error_after_percent, 5);
  Weights calibrated = weights;
  calibrated.calibration = calibration;
  make_learned_predictor(calibrated)->predict(kernels, device, {}, after);
  double error = 0;
  for (size_t i = 60; i < kernels.size(); ++i)
    error += std::abs(after[i].seconds / (1.6 * before[i].seconds) - 1) / 60;
  EXPECT_LT(error, 0.05) << "rows that the calibration did not see";
  rows.resize(3);
  EXPECT_ERROR(fit_calibration(weights, device, rows), kInput,
               "too few measurements of nvidia-l40s to calibrate with: 3 matmul");
}

}  // namespace
}  // namespace tilecast
