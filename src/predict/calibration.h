#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "predict/kernel_kinds.h"
#include "predict/law_scales.h"
#include "predict/similarity.h"
#include "predict/trained_on.h"

namespace tilecast {

/// Correction that all kernels of one software and precision share.
struct CalibrationGroup {
  Combination combination;
  double offset = 0;  ///< added to the logarithm of their times

  bool operator==(const CalibrationGroup&) const = default;
};

/// The result of a few measurements of one device for a kind. First the law's own constants change,
/// then the rest is added to the logarithm of the times, a Gaussian process' mean:
///   offset + offset of the group + sum over points of weight · exp(-|x - point|² / (2 length²)),
/// x being the kind's standardized features; a point of another group counts less. Source:
/// Rasmussen, Williams 2006, ch. 2.
struct KindCalibration {
  size_t rows = 0;  ///< measurements learned from; 0: no calibration
  LawScales law;
  double offset = 0;
  std::vector<CalibrationGroup> groups;
  double length = 1;
  std::vector<float> points;  ///< features of each row, one after the other
  std::vector<float> weights;
  std::vector<size_t> group_of_row;  ///< index into `groups`
  double other_group_share = 1;      ///< of a point's weight, for kernels of another group
  double low_ratio = 0.5;            ///< factor on the forecast, cross-validated: 90 % lie above it
  double high_ratio = 2.0;           ///< and 90 % below this one
  double error_before_percent = 0;   ///< mean, of the rows, without calibration
  double error_after_percent = 0;    ///< of each row by a calibration that did not see it

  /// Whether rows were of this software and precision.
  bool measured(const Combination& combination) const;
  /// The part that is added beside the law's constants.
  double at(const float* x, size_t width, const Combination& combination) const;
  bool operator==(const KindCalibration&) const = default;
};

/// A device calibration: `tilecast calibrate` makes it, `--calibration` applies it, in full to the
/// device that was measured and less to others the less their data sheets are alike.
struct Calibration {
  std::string gpu;  ///< for people only
  Signature signature{};
  std::array<KindCalibration, kKernelKindCount> models;

  const KindCalibration& model(KernelKind kind) const { return models[static_cast<size_t>(kind)]; }
  bool operator==(const Calibration&) const = default;
};

/// Throws Error{kInput} naming the file and what is wrong with it.
Calibration parse_calibration(std::string_view content, const std::string& where);
std::string serialize_calibration(const Calibration& calibration);

}  // namespace tilecast
