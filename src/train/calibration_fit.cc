#include "train/calibration_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "predict/predictor.h"
#include "tilecast/error.h"
#include "train/calibration_model.h"

namespace tilecast {
namespace {

/// Rows of one kind, as its calibration sees them.
struct CalibrationRows {
  CalibrationPoints points;
  std::vector<double> measured, forecast;
  Eigen::VectorXd targets;  ///< log(measured / forecast)
  Eigen::VectorXd noise;    ///< variance
  /// Mean logarithms of the forecasts' own intervals.
  double low_log = 0, high_log = 0;

  size_t count() const { return measured.size(); }
};

CalibrationRows collect(KernelKind kind, const Weights& weights, const Device& device,
                        const std::vector<TrainingRow>& all) {
  std::vector<Kernel> kernels;
  std::vector<Conditions> conditions;
  std::vector<const TrainingRow*> used;
  if (!weights.model(kind).known()) return {};
  for (const TrainingRow& row : all) {
    if (kernel_kind(row.kernel) != kind) continue;
    kernels.push_back(row.kernel);
    conditions.push_back(row.conditions);
    used.push_back(&row);
  }
  std::vector<KernelTime> times(kernels.size());
  predict_each(*make_learned_predictor(weights), kernels, conditions, device, times);
  CalibrationRows rows;
  const auto n = static_cast<Eigen::Index>(kernels.size());
  rows.targets.resize(n);
  rows.noise.resize(n);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto r = static_cast<Eigen::Index>(i);
    rows.measured.push_back(used[i]->seconds);
    rows.forecast.push_back(times[i].seconds);
    rows.targets(r) = std::log(used[i]->seconds / times[i].seconds);
    // A short call is noisy.
    rows.noise(r) = kNoiseDeviation * kNoiseDeviation / std::max(0.05f, used[i]->weight);
    rows.low_log += std::log(times[i].low_s / times[i].seconds) / static_cast<double>(n);
    rows.high_log += std::log(times[i].high_s / times[i].seconds) / static_cast<double>(n);
  }
  rows.points = calibration_points(kind, weights, std::move(kernels), std::move(conditions));
  return rows;
}

struct Fit {
  LawScales law;
  Eigen::VectorXd weights;     ///< of the rows
  std::vector<double> errors;  ///< log(forecast / measured) of each row by all others
};

/// The law is made linear around its factors, again and again. Rows far from what the others say
/// count less, as under Student's t with four degrees of freedom (ch. 9.3 there): a few rows hold
/// kernels that the software picked badly.
Fit fit(const CalibrationRows& rows, const Device& device) {
  constexpr int kRounds = 8;
  constexpr double kFreedom = 4;
  const auto n = static_cast<Eigen::Index>(rows.count());
  const Eigen::MatrixXd added = added_covariance(rows.points, rows.points);
  const Eigen::VectorXd unmoved = law_slopes(rows.points, device, {}).log_seconds;
  constexpr double kLawVariance = kLawDeviation * kLawDeviation;
  Eigen::VectorXd noise = rows.noise;
  Fit result;
  for (int round = 0; round < kRounds; ++round) {
    const LawSlopes law = law_slopes(rows.points, device, result.law);
    const Eigen::Map<const Eigen::VectorXd> factors(result.law.logs.data(), kLawConstantCount);
    const Eigen::VectorXd y = rows.targets - (law.log_seconds - unmoved) + law.slopes * factors;
    Eigen::MatrixXd covariance = added + kLawVariance * law.slopes * law.slopes.transpose();
    covariance.diagonal() += noise;
    const Eigen::MatrixXd inverse = covariance.ldlt().solve(Eigen::MatrixXd::Identity(n, n));
    result.weights = inverse * y;
    const Eigen::VectorXd moved = kLawVariance * law.slopes.transpose() * result.weights;
    std::copy(moved.begin(), moved.end(), result.law.logs.begin());
    result.errors.clear();
    for (Eigen::Index i = 0; i < n; ++i) {
      // Leave-one-out, ch. 5.4.2 there.
      const double error = -result.weights(i) / inverse(i, i);
      result.errors.push_back(error);
      const double expected = 1 / inverse(i, i) - noise(i) + rows.noise(i);
      noise(i) = rows.noise(i) * (kFreedom + error * error / expected) / (kFreedom + 1);
    }
  }
  return result;
}

/// The constant part of the correction, of all rows and of each software and precision.
void add_offsets(const CalibrationRows& rows, const Fit& found, KindCalibration& model) {
  model.offset = kOffsetDeviation * kOffsetDeviation * found.weights.sum();
  for (size_t i = 0; i < rows.count(); ++i) {
    const Combination& own = rows.points.groups[i];
    auto group =
        std::find_if(model.groups.begin(), model.groups.end(),
                     [&](const CalibrationGroup& known) { return known.combination == own; });
    if (group == model.groups.end()) group = model.groups.insert(group, {own, 0});
    group->offset +=
        kGroupDeviation * kGroupDeviation * found.weights(static_cast<Eigen::Index>(i));
    model.group_of_row.push_back(static_cast<size_t>(group - model.groups.begin()));
  }
}

/// The factors between which 80 % lie: of errors that are as many as rows, the ranks that hold for
/// one more row, drawn to the interval of the forecasts as by three rows.
void set_interval(const CalibrationRows& rows, std::vector<double> errors, KindCalibration& model) {
  constexpr double kForecastRows = 3;
  std::sort(errors.begin(), errors.end());
  const auto n = static_cast<double>(errors.size());
  const auto at = [&](double q) {
    const double rank = std::clamp(q * (n + 1) - 1, 0.0, n - 1);
    const auto below = static_cast<size_t>(rank);
    const size_t above = std::min(below + 1, errors.size() - 1);
    return std::lerp(errors[below], errors[above], rank - static_cast<double>(below));
  };
  const auto drawn = [&](double log, double forecast) {
    return (n * log + kForecastRows * forecast) / (n + kForecastRows);
  };
  model.low_ratio = std::min(1.0, std::exp(drawn(-at((1 + kCoverage) / 2), rows.low_log)));
  model.high_ratio = std::max(1.0, std::exp(drawn(-at((1 - kCoverage) / 2), rows.high_log)));
}

KindCalibration learn(const CalibrationRows& rows, const Device& device) {
  const Fit found = fit(rows, device);
  KindCalibration model;
  model.rows = rows.count();
  model.law = found.law;
  add_offsets(rows, found, model);
  model.length = kShapeLength;
  model.other_group_share = kOtherGroupShare;
  constexpr double kVariance = kShapeDeviation * kShapeDeviation / kOtherGroupShare;
  for (size_t i = 0; i < rows.count(); ++i) {
    const auto r = static_cast<Eigen::Index>(i);
    const Eigen::RowVectorXf point = rows.points.features.row(r);
    model.points.insert(model.points.end(), point.begin(), point.end());
    model.weights.push_back(static_cast<float>(kVariance * found.weights(r)));
    model.error_before_percent += 100 * std::abs(rows.forecast[i] / rows.measured[i] - 1);
    model.error_after_percent += 100 * std::abs(std::exp(found.errors[i]) - 1);
  }
  model.error_before_percent /= static_cast<double>(rows.count());
  model.error_after_percent /= static_cast<double>(rows.count());
  set_interval(rows, found.errors, model);
  return model;
}

}  // namespace

Calibration fit_calibration(const Weights& weights, const Device& device,
                            const std::vector<TrainingRow>& rows) {
  Calibration calibration{.gpu = device.id, .signature = signature_of(device), .models = {}};
  std::string counts;
  bool any = false;
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const auto kind = static_cast<KernelKind>(n);
    const CalibrationRows found = collect(kind, weights, device, rows);
    counts +=
        fmt::format("{}{} {}", counts.empty() ? "" : ", ", found.count(), kernel_kind_name(kind));
    if (found.count() < kFewestCalibrationRows) continue;
    calibration.models[n] = learn(found, device);
    any = true;
  }
  if (!any)
    throw Error(
        ErrorKind::kInput,
        fmt::format("too few measurements of {} to calibrate with: {}; at least {} of a kind "
                    "are needed ('tilecast calibrate --suggest' names good ones)",
                    device.id, counts, kFewestCalibrationRows));
  return calibration;
}

}  // namespace tilecast
