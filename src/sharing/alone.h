#pragma once

// A job alone on a GPU, for the law of sharing.

#include <cstdint>
#include <string>

#include "sharing/turns.h"
#include "tilecast/share.h"

namespace tilecast {

/// What a job takes alone, with what is said beside it.
struct AloneForecast {
  JobAlone job;
  std::string mode;      ///< inference, training, generation or server
  bool keeps_up = true;  ///< a server, with its requests alone
  int64_t framework_bytes = 0, usable_bytes = 0;
};

/// Throws Error that names the job.
AloneForecast alone_on(const Forecaster& forecaster, const GpuRef& gpu, const Job& job,
                       ShareHow how);

/// What a job takes by its forecast on this GPU. Jobs that differ only in their bounds have the
/// same forecast. Throws Error that does not name the job.
AloneForecast alone_by(const Result& forecast, const GpuRef& gpu, const JobBounds& bounds,
                       ShareHow how);

/// Whether jobs together take more than the part of the memory above which measured pairs did not
/// run.
bool is_tight_together(int64_t memory_bytes, int64_t usable_bytes);

/// The measured time of a step, else the forecast one with its input.
Interval step_time(const Interval& step_s, const JobBounds& bounds);

TurnTaker turn_taker(const JobAlone& job);

/// The relative speed if the kernels of a step take `ratio` times as long, at most 1.
double speed_with_kernels(const JobAlone& job, double ratio);

/// The relative speed on a part of the GPU with its interval.
Interval slice_speed_interval(double r);

}  // namespace tilecast
