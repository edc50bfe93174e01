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
  const KindCalibration& model = calibration.model(KernelKind::kMatmul);
  EXPECT_EQ(model.rows, 60u);
  EXPECT_NEAR(model.error_before_percent, 37.5, 1);
  EXPECT_LT(model.error_after_percent, 5);
  Weights calibrated = weights;
  calibrated.calibration = calibration;
  make_learned_predictor(calibrated)->predict(kernels, device, {}, after);
  double error = 0;
  for (size_t i = 60; i < kernels.size(); ++i)
    error += std::abs(after[i].seconds / (1.6 * before[i].seconds) - 1) / 60;
  EXPECT_LT(error, 0.05) << "rows that the calibration did not see";
  rows.resize(1);
  EXPECT_ERROR(fit_calibration(weights, device, rows), kInput,
               "too few measurements of nvidia-l40s to calibrate with: 1 matmul");
}

/// Measured times of kernels on a device whose law has other constants than forecasts take.
std::vector<TrainingRow> rows_of_moved_law(const Weights& weights, const Device& device,
                                           const std::vector<Kernel>& kernels,
                                           const LawScales& truth) {
  std::vector<KernelTime> times(kernels.size());
  make_learned_predictor(weights)->predict(kernels, device, {}, times);
  std::vector<TrainingRow> rows;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Law law = kernel_kind_def(kernel_kind(kernels[i])).law;
    const double factor = law(kernels[i], Chip(device, bundled_laws(), truth), {}).seconds /
                          law(kernels[i], Chip(device, bundled_laws()), {}).seconds;
    rows.push_back({.kernel = kernels[i], .seconds = times[i].seconds * factor});
  }
  return rows;
}

TEST(Calibrate, MovesTheLawsConstantsFirst) {
  // Ten rows of a device whose DRAM is slower than known and whose matrix units are faster. What
  // they say holds for kernels unlike all of them, far outside the rows' sizes.
  const Weights weights = load_weights("");
  const Device device = find_device("L40S");
  LawScales truth;
  truth.logs[static_cast<size_t>(LawConstant::kDram)] = 0.35;
  truth.logs[static_cast<size_t>(LawConstant::kUnits)] = -0.25;
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return kernels_of_sizes("linear", DType::kBf16, {{"m", m}, {"n", n}, {"k", k}})[0];
  };
  std::vector<Kernel> measured;
  for (int64_t i = 0; i < 5; ++i) {
    measured.push_back(product(16, 4096 + 512 * i, 4096));
    measured.push_back(product(4096, 4096, 2048 + 512 * i));
  }
  const Calibration calibration =
      fit_calibration(weights, device, rows_of_moved_law(weights, device, measured, truth));
  const LawScales& law = calibration.model(KernelKind::kTensorMatmul).law;
  EXPECT_GT(law.logs[static_cast<size_t>(LawConstant::kDram)], 0.08);
  EXPECT_LT(law.logs[static_cast<size_t>(LawConstant::kUnits)], -0.05);
  Weights calibrated = weights;
  calibrated.calibration = calibration;
  const std::vector<Kernel> unlike = {product(64, 16384, 256), product(8192, 16384, 8192)};
  const std::vector<TrainingRow> truths = rows_of_moved_law(weights, device, unlike, truth);
  std::vector<KernelTime> before(2), after(2);
  make_learned_predictor(weights)->predict(unlike, device, {}, before);
  make_learned_predictor(calibrated)->predict(unlike, device, {}, after);
  for (size_t i = 0; i < 2; ++i) {
    const double was = std::abs(std::log(before[i].seconds / truths[i].seconds));
    const double is = std::abs(std::log(after[i].seconds / truths[i].seconds));
    EXPECT_LT(is, 0.75 * was) << "kernel " << i;
  }
}

TEST(Calibrate, BelievesNoSingleRow) {
  // One of twelve rows took 30 times as long: the others stay within a fifth of their times.
  const Weights weights = load_weights("");
  const Device device = find_device("L40S");
  std::vector<Kernel> kernels;
  for (int64_t i = 1; i <= 12; ++i)
    kernels.push_back(
        kernels_of_sizes("linear", DType::kFp32, {{"m", 256 * i}, {"n", 2048}, {"k", 1024}})[0]);
  std::vector<TrainingRow> rows = rows_of_moved_law(weights, device, kernels, {});
  rows[6].seconds *= 30;
  Weights calibrated = weights;
  calibrated.calibration = fit_calibration(weights, device, rows);
  std::vector<KernelTime> after(kernels.size());
  make_learned_predictor(calibrated)->predict(kernels, device, {}, after);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (i == 6) continue;
    EXPECT_NEAR(after[i].seconds / rows[i].seconds, 1, 0.2) << "row " << i;
  }
}

}  // namespace
}  // namespace tilecast
