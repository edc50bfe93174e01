#pragma once

#include <vector>

#include "predict/weights.h"
#include "train/dataset.h"

namespace tilecast {

/// A kind of kernels is calibrated from at least so many rows: each is forecast by the others.
inline constexpr size_t kFewestCalibrationRows = 2;

/// Learns what the device's measured kernels do differently from their forecasts, for each kind
/// with enough rows: first by the constants of its law, then by what these do not explain
/// (calibration_model.h). Rows far from what all others say count less. Throws Error{kInput} where
/// no kind has enough.
Calibration fit_calibration(const Weights& weights, const Device& device,
                            const std::vector<TrainingRow>& rows);

}  // namespace tilecast
