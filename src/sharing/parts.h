#pragma once

// Jobs on parts of a GPU that they have for themselves.

#include <vector>

#include "sharing/alone.h"
#include "tilecast/share.h"

namespace tilecast {

/// The speed, with the intervals of the step alone and of the relative speed.
void set_speed(SharedJob& job, const Interval& relative);

/// Each job on the SMs that its percentage leaves to it; all share the memory. Throws Error{kInput}
/// for percentages that are missing or sum up to more than 100.
void share_by_sms(ShareForecast& f, const Forecaster& forecaster, const GpuRef& gpu,
                  const ShareQuery& query, const std::vector<AloneForecast>& alone);

/// Each job on a slice of MIG: the slices that let most jobs fit, then those with the largest sum
/// of relative speeds. Throws Error if the GPU has none, or not enough.
void share_by_slices(ShareForecast& f, const Forecaster& forecaster, const GpuRef& gpu,
                     const ShareQuery& query, const std::vector<AloneForecast>& alone);

}  // namespace tilecast
