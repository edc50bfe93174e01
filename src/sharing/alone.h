#pragma once

// A job alone on a GPU, for the law of sharing.

#include <cstdint>
#include <string>
#include <vector>

#include "sharing/turns.h"
#include "tilecast/share.h"

namespace tilecast {

/// What a job takes alone, with what is said beside it.
struct AloneForecast {
  JobAlone job;
  std::string mode;      ///< inference, training, generation or server
  double kernels_s = 0;  ///< of a step, forecast
  int64_t framework_bytes = 0, usable_bytes = 0;
  std::vector<std::string> assumptions;
};

/// Throws Error that names the job.
AloneForecast alone_on(const Forecaster& forecaster, const GpuRef& gpu, const Job& job,
                       ShareHow how);

/// The measured time of a step, else the forecast one with its input.
Interval step_time(const Interval& step_s, const JobBounds& bounds);

TurnTaker turn_taker(const JobAlone& job);

/// The relative speed if the kernels of a step take `ratio` times as long, at most 1.
double speed_with_kernels(const JobAlone& job, double ratio);

}  // namespace tilecast
