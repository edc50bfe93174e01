#pragma once

#include "api/llm_steps.h"
#include "sim/serving.h"

namespace tilecast {

/// The limits of a server but the number of its cache blocks.
ServerLimits server_limits(const LlmSteps& steps);

/// Forecasts a server under a load. `alone` is the forecast of a single request; its intervals give
/// the uncertainty.
LlmForecast::Serving forecast_server(const LlmSteps& steps, const ServingLoad& load,
                                     const ServerLimits& limits, const LlmForecast& alone);

}  // namespace tilecast
