#pragma once

#include "api/llm_pools.h"
#include "api/llm_steps.h"

namespace tilecast {

/// Fills in the memory of a server under the load of `asked`, and what its clients see if the
/// longest request fits. `forecast` has the results of a single request; its intervals give the
/// uncertainty. `workers`: prefill workers; nullptr: none.
void add_serving(LlmForecast& forecast, const LlmSteps& steps, const PrefillWorkers* workers,
                 const Request& asked);

}  // namespace tilecast
