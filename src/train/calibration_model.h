#pragma once

// Belief about a device before it is measured, as a Gaussian process over the logarithms of
// measured / forecast. Calibration conditions it on measured rows; suggestions are the rows that
// narrow it most. Per kind:
//   slopes of the law · factors on its constants + offset + offset of software and precision
//   + a smooth function of the features, most of it of that software and precision alone + noise.
// Source: Rasmussen, Williams 2006, ch. 2. The amplitudes were chosen by the errors of
// B200 with it left out (research/experiments.md).

#include <Eigen/Dense>
#include <optional>
#include <span>
#include <vector>

#include "predict/weights.h"

namespace tilecast {

/// Standard deviations of logarithms.
inline constexpr double kLawDeviation = 0.2;     // of a factor on a group of the law's constants
inline constexpr double kOffsetDeviation = 0.1;  // common to all rows
inline constexpr double kGroupDeviation = 0.1;   // of a software and precision
inline constexpr double kShapeDeviation = 0.1;   // of the features, in all software
inline constexpr double kGroupShapeDeviation = 0.2;  // of the features, in one
inline constexpr double kNoiseDeviation = 0.2;       // of a row
/// Distance of standardized features over which they say something of each other.
inline constexpr double kShapeLength = 3;

/// Share of what a row says of another software's kernel of the same features.
inline constexpr double kOtherGroupShare =
    kShapeDeviation * kShapeDeviation /
    (kShapeDeviation * kShapeDeviation + kGroupShapeDeviation * kGroupShapeDeviation);

/// Kernels of one kind on a device.
struct CalibrationPoints {
  KernelKind kind{};
  LawConstants laws;
  std::vector<Kernel> kernels;
  std::vector<Conditions> conditions;
  std::vector<Combination> groups;
  Eigen::MatrixXf features;  ///< a row each, standardized

  size_t count() const { return kernels.size(); }
};
CalibrationPoints calibration_points(KernelKind kind, const Weights& weights,
                                     std::vector<Kernel> kernels,
                                     std::vector<Conditions> conditions);

/// The kind's law with these factors on its constants, and by how much its logarithm grows with the
/// logarithm of each factor: a row for each kernel.
struct LawSlopes {
  Eigen::VectorXd log_seconds;
  Eigen::MatrixXd slopes;
};
LawSlopes law_slopes(const CalibrationPoints& points, const Device& device,
                     const LawScales& scales);

/// Covariance of the correction beside the law, between the rows of a and the rows of b.
Eigen::MatrixXd added_covariance(const CalibrationPoints& a, const CalibrationPoints& b);

}  // namespace tilecast
