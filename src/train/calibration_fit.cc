#include "train/calibration_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

#include "predict/predictor.h"
#include "predict/residual.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Rows of one kind, as its calibration sees them.
struct CalibrationRows {
  std::vector<float> points;  ///< standardized features
  std::vector<double> measured, forecast;
  std::vector<double> targets;  ///< log(measured / forecast)
  std::vector<double> noise;    ///< variance, in units of the model's noise

  size_t count() const { return targets.size(); }
};

CalibrationRows collect(NetKind kind, const Weights& weights, const Device& device,
                        const std::vector<TrainingRow>& all) {
  std::vector<Kernel> kernels;
  std::vector<Conditions> conditions;
  std::vector<const TrainingRow*> used;
  const Net& net = weights.net(kind);
  if (!net.known()) return {};
  for (const TrainingRow& row : all) {
    if (net_of(row.kernel) != kind) continue;
    kernels.push_back(row.kernel);
    conditions.push_back(row.conditions);
    used.push_back(&row);
  }
  std::vector<KernelTime> times(kernels.size());
  predict_each(*make_learned_predictor(weights), kernels, conditions, device, times);
  const size_t width = net.mean.size();
  CalibrationRows rows;
  rows.points.resize(kernels.size() * width);
  for (size_t i = 0; i < kernels.size(); ++i) {
    standardize(net, net_def(kind).make(kernels[i]), &rows.points[i * width]);
    rows.measured.push_back(used[i]->seconds);
    rows.forecast.push_back(times[i].seconds);
    rows.targets.push_back(std::log(used[i]->seconds / times[i].seconds));
    rows.noise.push_back(1 / std::max(0.05f, used[i]->weight));  // a short call is noisy
  }
  return rows;
}

struct Fit {
  Eigen::VectorXd weights;
  double offset = 0;
  double length = 1;
  std::vector<double> unseen;  ///< what the others add to each row
  double error = 0;            ///< mean |log time| of the rows, unseen
};

double log_time_error(const CalibrationRows& rows, size_t i, double added) {
  return added - rows.targets[i];
}

Fit fit(const CalibrationRows& rows, const Eigen::MatrixXd& distances, double length,
        double amplitude, double noise) {
  const auto n = static_cast<Eigen::Index>(rows.count());
  const double width = -0.5 / (length * length);
  Eigen::MatrixXd covariance = (amplitude * amplitude) * (distances.array() * width).exp().matrix();
  for (Eigen::Index i = 0; i < n; ++i)
    covariance(i, i) += noise * noise * rows.noise[static_cast<size_t>(i)];
  const Eigen::MatrixXd inverse = covariance.ldlt().solve(Eigen::MatrixXd::Identity(n, n));
  const Eigen::Map<const Eigen::VectorXd> y(rows.targets.data(), n);
  // The offset is the mean of the process, by generalized least squares, drawn to 0 as by one row.
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(n);
  Fit result;
  result.length = length;
  result.offset = ones.dot(inverse * y) / (ones.dot(inverse * ones) + 1);
  result.weights = inverse * (y - result.offset * ones);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto r = static_cast<size_t>(i);
    // Leave-one-out, ch. 5.4.2 there.
    result.unseen.push_back(y(i) - result.weights(i) / inverse(i, i));
    result.error += std::abs(log_time_error(rows, r, result.unseen.back()));
  }
  result.error /= static_cast<double>(n);
  // As the predictor adds them up: exponentials without the amplitude.
  result.weights *= amplitude * amplitude;
  return result;
}

Eigen::MatrixXd squared_distances(const CalibrationRows& rows, size_t width) {
  const auto n = static_cast<Eigen::Index>(rows.count());
  const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> x(
      rows.points.data(), n, static_cast<Eigen::Index>(width));
  Eigen::MatrixXd distances(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j)
      distances(i, j) = static_cast<double>((x.row(i) - x.row(j)).squaredNorm());
  }
  return distances;
}

CalibrationNet learn(const CalibrationRows& rows, NetKind kind) {
  const size_t width = feature_names(kind).size();
  const Eigen::MatrixXd distances = squared_distances(rows, width);
  std::optional<Fit> best;
  for (const double length : {1.0, 2.0, 4.0, 8.0}) {
    for (const double amplitude : {0.3, 0.7, 1.5}) {
      for (const double noise : {0.03, 0.1, 0.3}) {
        Fit found = fit(rows, distances, length, amplitude, noise);
        if (!best || found.error < best->error) best = std::move(found);
      }
    }
  }
  CalibrationNet net;
  net.rows = rows.count();
  net.offset = best->offset;
  net.length = best->length;
  net.points = rows.points;
  std::vector<double> errors;
  for (size_t i = 0; i < rows.count(); ++i) {
    net.weights.push_back(static_cast<float>(best->weights(static_cast<Eigen::Index>(i))));
    errors.push_back(log_time_error(rows, i, best->unseen[i]));
    net.error_before_percent += 100 * std::abs(rows.forecast[i] / rows.measured[i] - 1);
    net.error_after_percent += 100 * std::abs(std::exp(errors.back()) - 1);
  }
  net.error_before_percent /= static_cast<double>(rows.count());
  net.error_after_percent /= static_cast<double>(rows.count());
  std::sort(errors.begin(), errors.end());
  const auto at = [&](double q) {
    return errors[static_cast<size_t>(q * static_cast<double>(errors.size() - 1))];
  };
  net.low_ratio = std::min(1.0, std::exp(-at((1 + kCoverage) / 2)));
  net.high_ratio = std::max(1.0, std::exp(-at((1 - kCoverage) / 2)));
  return net;
}

}  // namespace

Calibration fit_calibration(const Weights& weights, const Device& device,
                            const std::vector<TrainingRow>& rows) {
  Calibration calibration{.gpu = device.id, .signature = signature_of(device), .nets = {}};
  std::string counts;
  bool any = false;
  for (size_t n = 0; n < kNetCount; ++n) {
    const auto kind = static_cast<NetKind>(n);
    const CalibrationRows found = collect(kind, weights, device, rows);
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", found.count(), net_name(kind));
    if (found.count() < kFewestCalibrationRows) continue;
    calibration.nets[n] = learn(found, kind);
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
