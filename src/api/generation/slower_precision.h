#pragma once

// Whether text generation in low precision is forecast to be faster than in 16 bits.

#include "tilecast/llm.h"

namespace tilecast {

/// The forecast of a static batch, with a warning where a precision of less than 16 bits was asked
/// for and a time to first or per output token is no shorter than in the 16 bits that the model has
/// otherwise. It is forecast a second time for that: not for many forecasts. `request` is that of
/// the forecast.
LlmForecast warn_of_slower_precision(LlmForecast forecast, const Forecaster& forecaster,
                                     const ModelRef& model, const GpuRef& gpu,
                                     const Request& request);

}  // namespace tilecast
