#pragma once

// Forecasts of a training step over several ranks.

#include "scenario/pass/pass.h"
#include "scenario/timed_pass.h"

namespace tilecast {

/// Fills in times, work, rows, memory and the parts of each stage. `setup.device` is the GPU of the
/// cluster. Throws Error.
void forecast_parallel(Forecast& forecast, const PassSetup& setup, const TimingSetup& timing);

std::vector<StepOperation> parallel_operations(const PassSetup& setup, const TimingSetup& timing);

}  // namespace tilecast
