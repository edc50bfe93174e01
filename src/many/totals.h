#pragma once

#include "tilecast/ask.h"
#include "tilecast/many.h"

namespace tilecast {

ForecastTotals totals_of(const Forecast& forecast);
ForecastTotals totals_of(const LlmForecast& forecast);
ForecastTotals totals_of(const AcceleratorForecast& forecast);
ForecastTotals totals_of(const Result& result);

}  // namespace tilecast
