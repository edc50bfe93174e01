#include "train/calibration_model.h"

#include <cmath>

#include "predict/conditions.h"
#include "predict/residual.h"

namespace tilecast {

CalibrationPoints calibration_points(KernelKind kind, const Weights& weights,
                                     std::vector<Kernel> kernels,
                                     std::vector<Conditions> conditions) {
  CalibrationPoints points{.kind = kind,
                           .laws = weights.laws,
                           .kernels = std::move(kernels),
                           .conditions = std::move(conditions),
                           .groups = {},
                           .features = {}};
  const KindModel& model = weights.model(kind);
  const auto width = static_cast<Eigen::Index>(model.mean.size());
  points.features.resize(static_cast<Eigen::Index>(points.count()), width);
  std::vector<float> inputs(model.mean.size());
  for (size_t i = 0; i < points.count(); ++i) {
    points.groups.push_back(combination_of(points.kernels[i], points.conditions[i]));
    standardize(model, kernel_kind_def(kind).make(points.kernels[i], points.conditions[i]),
                inputs.data());
    points.features.row(static_cast<Eigen::Index>(i)) =
        Eigen::Map<const Eigen::RowVectorXf>(inputs.data(), width);
  }
  return points;
}

LawSlopes law_slopes(const CalibrationPoints& points, const Device& device,
                     const LawScales& scales) {
  constexpr double kStep = 0.05;  // of the logarithm: laws have corners
  const Law law = kernel_kind_def(points.kind).law;
  const auto n = static_cast<Eigen::Index>(points.count());
  LawSlopes result{Eigen::VectorXd(n), Eigen::MatrixXd(n, kLawConstantCount)};
  for (size_t i = 0; i < points.count(); ++i) {
    const auto r = static_cast<Eigen::Index>(i);
    std::optional<Device> store;
    const Device& running = running_device(device, points.conditions[i], store);
    const auto log_law = [&](const LawScales& with) {
      return std::log(
          law(points.kernels[i], Chip(running, points.laws, with), points.conditions[i]).seconds);
    };
    result.log_seconds(r) = log_law(scales);
    for (size_t c = 0; c < kLawConstantCount; ++c) {
      LawScales more = scales, less = scales;
      more.logs[c] += kStep;
      less.logs[c] -= kStep;
      result.slopes(r, static_cast<Eigen::Index>(c)) =
          (log_law(more) - log_law(less)) / (2 * kStep);
    }
  }
  return result;
}

Eigen::MatrixXd added_covariance(const CalibrationPoints& a, const CalibrationPoints& b) {
  const auto square = [](double x) { return x * x; };
  constexpr double kWidth = -0.5 / (kShapeLength * kShapeLength);
  Eigen::MatrixXd covariance(static_cast<Eigen::Index>(a.count()),
                             static_cast<Eigen::Index>(b.count()));
  for (Eigen::Index i = 0; i < covariance.rows(); ++i) {
    for (Eigen::Index j = 0; j < covariance.cols(); ++j) {
      const bool same = a.groups[static_cast<size_t>(i)] == b.groups[static_cast<size_t>(j)];
      const double distance =
          static_cast<double>((a.features.row(i) - b.features.row(j)).squaredNorm());
      covariance(i, j) = square(kOffsetDeviation) + (same ? square(kGroupDeviation) : 0) +
                         (square(kShapeDeviation) + (same ? square(kGroupShapeDeviation) : 0)) *
                             std::exp(kWidth * distance);
    }
  }
  return covariance;
}

}  // namespace tilecast
