#pragma once

#include "tilecast/search.h"

namespace tilecast {

/// Sorts the candidates and fills in their numbers, the Pareto front and the alternatives.
void rank_servings(ServingPlan& plan);

}  // namespace tilecast
