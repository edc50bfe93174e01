#include <array>

#include "tilecast/report.h"

namespace tilecast {

std::span<const ForecastFormat> forecast_formats() {
  static constexpr std::array kFormats = {
      ForecastFormat{.name = "table",
                     .pass = forecast_table,
                     .tokens = llm_table,
                     .is_table = true,
                     .shows_largest_batch = true},
      ForecastFormat{.name = "json",
                     .pass = [](const Forecast& f, const TableStyle&) { return forecast_json(f); },
                     .tokens = [](const LlmForecast& f, const TableStyle&) { return llm_json(f); },
                     .holds_warnings = true,
                     .shows_largest_batch = true},
      ForecastFormat{.name = "csv",
                     .pass = [](const Forecast& f, const TableStyle&) { return forecast_csv(f); },
                     .tokens = [](const LlmForecast& f, const TableStyle&) { return llm_csv(f); }},
  };
  return kFormats;
}

}  // namespace tilecast
