#pragma once

#include <string>
#include <vector>

#include "train/dataset.h"

namespace tilecast {

/// The data of a few measurements of one device.
struct CalibrationData {
  std::vector<TrainingRow> rows;    ///< of the device
  std::vector<std::string> report;  ///< what was left out, and why
};

/// Reads measurement files or folders for the calibration of `device`. `gpu` is the name or path
/// that it was found by; rows may name it so, or by its id, name or an alias. Rows without a time
/// are left out and counted. `read`: further measurements of the device. Throws Error{kInput} where
/// a path holds no measured kernel, or none of this device.
CalibrationData read_calibration_data(const std::vector<std::string>& paths, const Device& device,
                                      const std::string& gpu, const Weights& weights,
                                      std::vector<MeasurementSet> read = {});

/// The device's kernels in such files, whether they have a time or not: candidates to measure.
std::vector<KernelMeasurement> read_candidates(const std::string& path, const Device& device,
                                               const std::string& gpu);

}  // namespace tilecast
