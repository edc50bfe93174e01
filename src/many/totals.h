#pragma once

#include "tilecast/llm.h"
#include "tilecast/many.h"

namespace tilecast {

ForecastTotals totals_of(const Forecast& forecast);
ForecastTotals totals_of(const LlmForecast& forecast);

}  // namespace tilecast
