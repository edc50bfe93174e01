#pragma once

#include <string>
#include <vector>

#include "predict/weights.h"
#include "train/dataset.h"

namespace tilecast {

/// Learns what the device's measured kernels do differently from their forecasts: per network with
/// at least kFewestCalibrationRows rows a Gaussian process, its scale and noise chosen by
/// leave-one- out error. Throws Error{kInput} where no network has enough rows.
inline constexpr size_t kFewestCalibrationRows = 8;
Calibration calibrate(const Weights& weights, const Device& device,
                      const std::vector<TrainingRow>& rows);

/// `count` kernels worth measuring first, as a CSV of the project's own layout without its times:
/// products of model-like shapes from small to large, then kernels over rows and elements.
std::string suggest_kernels(const Device& device, size_t count);

}  // namespace tilecast
