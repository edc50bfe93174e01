#pragma once

// Whether text generation in low precision is forecast to be faster than in 16 bits.

#include "scenario/generation/served_model.h"
#include "scenario/scenario.h"

namespace tilecast {

/// Adds a warning to the forecast of a static batch where a precision of less than 16 bits was
/// asked for, of the model or of its cache, and a time to first or per output token is no shorter
/// than in the 16 bits that the model has otherwise. It is forecast again for each of the two: not
/// for many forecasts. `inquiry` is that of the forecast.
void warn_of_slower_precision(GenerationForecast& forecast, const Inquiry& inquiry);

/// By what share a step that decodes takes longer with the changed request, in the middle of the
/// output; negative: shorter. The change is one of precision.
double decode_slowdown(const ServedModel& served, const Request& changed);

}  // namespace tilecast
