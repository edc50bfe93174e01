#pragma once

#include <vector>

#include "predict/weights.h"
#include "train/dataset.h"

namespace tilecast {

/// A kind of kernels is calibrated from at least so many rows.
inline constexpr size_t kFewestCalibrationRows = 8;

/// Learns what the device's measured kernels do differently from their forecasts: for each kind
/// with enough rows a Gaussian process, its scale and noise chosen by leave-one-out error. Throws
/// Error{kInput} where no kind has enough.
Calibration fit_calibration(const Weights& weights, const Device& device,
                            const std::vector<TrainingRow>& rows);

}  // namespace tilecast
