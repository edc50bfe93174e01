#pragma once

// Tables of what was learned from measurements.

#include <string>

#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {

/// The errors of held-out rows, and of GPUs and architectures that were left out.
std::string train_table(const TrainResult& result, const TableStyle& style);
std::string collective_train_table(const CollectiveTrainResult& result, const TableStyle& style);
/// The errors of each kind of kernels before and after.
std::string calibration_table(const CalibrateResult& result, const TableStyle& style);

}  // namespace tilecast
