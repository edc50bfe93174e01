#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "predict/nets.h"
#include "predict/similarity.h"

namespace tilecast {

/// What a few measurements of one device add to the logarithm of a kind's times: a Gaussian
/// process' mean,
///   offset + sum over points of weight · exp(-|x - point|² / (2 length²)),
/// x being the kind's standardized features. Source: Rasmussen, Williams 2006, ch. 2.
struct CalibrationNet {
  size_t rows = 0;  ///< measurements learned from; 0: no calibration
  double offset = 0;
  double length = 1;
  std::vector<float> points;  ///< features of each row, one after the other
  std::vector<float> weights;
  double low_ratio = 0.5;           ///< factor on the forecast, cross-validated: 90 % lie above it
  double high_ratio = 2.0;          ///< and 90 % below this one
  double error_before_percent = 0;  ///< mean, of the rows, without calibration
  double error_after_percent = 0;   ///< of each row by a calibration that did not see it

  double at(const float* x, size_t width) const;
  bool operator==(const CalibrationNet&) const = default;
};

/// A device calibration: `tilecast calibrate` makes it, `--calibration` applies it, in full to the
/// device that was measured and less to others the less their data sheets are alike.
struct Calibration {
  std::string gpu;  ///< for people only
  Signature signature{};
  std::array<CalibrationNet, kNetCount> nets;

  const CalibrationNet& net(NetKind kind) const { return nets[static_cast<size_t>(kind)]; }
  bool operator==(const Calibration&) const = default;
};

/// Throws Error{kInput} naming the file and what is wrong with it.
Calibration parse_calibration(std::string_view content, const std::string& where);
std::string serialize_calibration(const Calibration& calibration);

}  // namespace tilecast
