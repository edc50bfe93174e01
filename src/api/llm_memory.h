#pragma once

// What a language model takes of each rank's memory, and how much of the cache fits beside it.

#include "api/llm_steps.h"
#include "sim/serving.h"

namespace tilecast {

/// Fills in the memory of a static batch; warns where it does not fit.
void add_batch_memory(LlmForecast& forecast, const LlmSteps& steps);

/// Fills in the memory of a server, whose cache takes all that is left, and the blocks of `limits`.
/// Warns, and `forecast.fits` is false, where the longest request of the load does not fit.
void add_server_memory(LlmForecast& forecast, const LlmSteps& steps, const ServingLoad& load,
                       ServerLimits& limits);

}  // namespace tilecast
