#pragma once

#include "measurements/measurements.h"

namespace tilecast {

/// Rows of Protocol::kSlowingCall become rows of kSingleCall: what the host's overhead has grown by
/// since the file's first row is taken off. It is estimated by the law: in each of some windows of
/// consecutive rows, what the shortest kernels take longer than the law says. Files on GPUs without
/// a device file stay as they are. The time that was taken off is listed in `changes`.
void remove_call_drift(MeasurementSet& set);

/// The least rising line through the points: of points that fall, their mean.
std::vector<double> rising(const std::vector<double>& values);

}  // namespace tilecast
