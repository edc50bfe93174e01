#pragma once

#include "scenario/generation/served_model.h"

namespace tilecast {

/// Facts about the model that do not depend on parallelism: one rank, one sequence.
void add_facts(GenerationForecast& forecast, const ServedModel& served);

}  // namespace tilecast
