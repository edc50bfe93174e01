#pragma once

#include "tilecast/forecast.h"
#include "tilecast/result.h"
#include "tilecast/search.h"

namespace tilecast {

ForecastTotals totals_of(const Forecast& forecast);
ForecastTotals totals_of(const GenerationForecast& forecast);
ForecastTotals totals_of(const AcceleratorForecast& forecast);
ForecastTotals totals_of(const Result& result);

}  // namespace tilecast
