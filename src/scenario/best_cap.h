#pragma once

// The power cap with the least energy.

#include "tilecast/request.h"
#include "tilecast/result.h"

namespace tilecast {

struct Inquiry;

/// The forecast at the cap whose energy is least: for each token where there are tokens, else of
/// the pass, step or request. Caps are tried in steps of a twentieth of the board's limit, from the
/// limit down to the last that leaves the board work. Throws Error{kUnsupported} where power is not
/// forecast.
Result at_best_cap(const Inquiry& inquiry);

}  // namespace tilecast
