#pragma once

#include "api/llm_steps.h"
#include "sim/serving.h"

namespace tilecast {

/// What a server does under a load. `alone` has the times of one request by itself, which say how
/// uncertain the steps are.
LlmForecast::Serving forecast_server(const LlmSteps& steps, const ServingLoad& load,
                                     const ServerLimits& limits, const LlmForecast& alone);

}  // namespace tilecast
