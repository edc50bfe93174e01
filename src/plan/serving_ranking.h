#pragma once

#include "tilecast/serving_plan.h"

namespace tilecast {

/// Sorts the candidates and fills in their numbers, the Pareto front and the alternatives.
void rank_servings(ServingPlan& plan);

}  // namespace tilecast
