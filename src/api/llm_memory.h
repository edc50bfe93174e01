#pragma once

// Memory of a language model on each rank, and the size of the KV cache that fits beside it.

#include "api/llm_steps.h"
#include "sim/serving.h"

namespace tilecast {

/// Fills in the memory of a static batch; adds a warning if it does not fit.
void add_batch_memory(LlmForecast& forecast, const LlmSteps& steps);

/// Fills in the memory of a server, whose cache uses all remaining memory, and the number of blocks
/// in `limits`. If the longest request of the load does not fit, `forecast.fits` is false and there
/// is a warning.
void add_server_memory(LlmForecast& forecast, const LlmSteps& steps, const ServingLoad& load,
                       ServerLimits& limits);

}  // namespace tilecast
