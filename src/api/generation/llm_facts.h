#pragma once

#include "api/generation/llm_steps.h"

namespace tilecast {

/// Facts about the model that do not depend on parallelism: one rank, one sequence.
void add_facts(LlmForecast& forecast, const LlmSteps& steps);

}  // namespace tilecast
