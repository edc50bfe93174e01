#pragma once

#include "tilecast/error.h"
#include "tilecast/request.h"

namespace tilecast {

/// The search times many candidates, each with one clock. Throws Error{kInput} where the best cap
/// is to be found.
inline void require_stated_cap(const EnergyTerms& energy) {
  if (energy.best_power_cap)
    throw Error(ErrorKind::kInput,
                "`power-cap-w` best: plans take a cap in watts; find the best one with `forecast` "
                "for a configuration of the plan");
}

}  // namespace tilecast
