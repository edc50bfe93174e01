#pragma once

#include "api/llm_steps.h"
#include "sim/serving.h"

namespace tilecast {

/// Forecasts a server under a load. `alone` is the forecast of a single request; its intervals give
/// the uncertainty.
LlmForecast::Serving forecast_server(const LlmSteps& steps, const ServingLoad& load,
                                     const ServerLimits& limits, const LlmForecast& alone);

}  // namespace tilecast
