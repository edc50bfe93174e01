#pragma once

#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// Power of the first GPU of the first replica over a minute in the middle of the run that is
/// counted (src/sim/warmup.h), all of a shorter one. A decode of many steps is one point. Not
/// forecast for prefill workers: the GPU is one of those that compute the other tokens. Kernels of
/// drafts have no energy: their time counts as idle. Throws what forecast_generation throws,
/// Error{kUnsupported} where power is not forecast, Error{kInput} where the server does not run.
PowerTimeline served_power(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                           const Request& request);

}  // namespace tilecast
