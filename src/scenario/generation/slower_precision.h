#pragma once

// Whether text generation in low precision is forecast to be faster than in 16 bits.

#include "scenario/scenario.h"

namespace tilecast {

/// Adds a warning to the forecast of a static batch where a precision of less than 16 bits was
/// asked for and a time to first or per output token is no shorter than in the 16 bits that the
/// model has otherwise. It is forecast a second time for that: not for many forecasts. `inquiry`
/// is that of the forecast.
void warn_of_slower_precision(LlmForecast& forecast, const Inquiry& inquiry);

}  // namespace tilecast
