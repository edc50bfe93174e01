#pragma once

// Changes with which a model that is served would fit into memory.

#include "scenario/generation/served_model.h"
#include "tilecast/result.h"

namespace tilecast {

/// Adds to a warning the first change of each option with which it fits: more ranks, a lower
/// precision of the weights, of the cache; if none is enough, the first pair. `forecast`: of the
/// model as it is, with its memory and parameters.
void add_changes_that_fit(Warning& warning, const ServedModel& served,
                          const GenerationForecast& forecast);

/// Adds the largest share of the memory, in hundredths below `share`, with which a server fits:
/// where the rule gives the cache so much that what lies beside it finds no room.
void add_share_that_fits(Warning& warning, const ServedModel& served, double share);

}  // namespace tilecast
