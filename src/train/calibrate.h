#pragma once

#include <vector>

#include "measurements/measurements.h"
#include "tilecast/learn.h"

namespace tilecast {

/// `calibrate` with measurements that were read already beside those of `options`.
CalibrateResult calibrate_with(const CalibrateOptions& options, std::vector<MeasurementSet> read);

}  // namespace tilecast
