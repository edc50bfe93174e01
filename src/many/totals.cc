// The numbers of a forecast that tables have.

#include "many/totals.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// The codes of the warnings, each once.
std::string codes_of(const std::vector<Warning>& warnings) {
  std::vector<std::string> codes;
  for (std::string& code : warning_code_names(warnings)) {
    if (std::find(codes.begin(), codes.end(), code) == codes.end())
      codes.push_back(std::move(code));
  }
  return join(codes, ",");
}

}  // namespace

ForecastTotals totals_of(const Forecast& f) {
  return {.latency_s = f.latency_s,
          .latency_low_s = f.latency_low_s,
          .latency_high_s = f.latency_high_s,
          .forward_s = f.forward_s,
          .backward_s = f.backward_s,
          .optimizer_s = f.optimizer_s,
          .tokens_per_s = f.tokens_per_s,
          .flops = f.flops,
          .bytes = f.bytes,
          .parameters = f.parameters,
          .utilization_ratio = f.utilization_ratio,
          .peak_bytes = f.memory.peak_bytes,
          .fits = f.memory.fits,
          .dtype = f.dtype,
          .warning_codes = codes_of(f.warnings)};
}

ForecastTotals totals_of(const LlmForecast& f) {
  return {.latency_s = f.latency.seconds,
          .latency_low_s = f.latency.low_s,
          .latency_high_s = f.latency.high_s,
          .ttft_s = f.ttft.seconds,
          .tpot_s = f.tpot.seconds,
          .tokens_per_s = f.tokens_per_s,
          .flops = f.flops,
          .bytes = f.bytes,
          .parameters = f.parameters,
          .utilization_ratio = f.utilization_ratio,
          .peak_bytes = f.peak_bytes,
          .fits = f.fits,
          .dtype = f.dtype,
          .warning_codes = codes_of(f.warnings)};
}

ForecastTotals totals_of(const AcceleratorForecast& f) {
  return {.latency_s = f.latency_s(),
          .latency_low_s = f.low_cycles / f.clock_hz,
          .latency_high_s = f.high_cycles / f.clock_hz,
          .flops = 2 * f.macs,
          .utilization_ratio = f.utilization_ratio(),
          .dtype = f.operand_dtype};
}

ForecastTotals totals_of(const Result& result) {
  return std::visit([](const auto& forecast) { return totals_of(forecast); }, result);
}

std::span<const TotalsColumn> totals_columns() {
  using T = ForecastTotals;
  static constexpr std::array kColumns = {TotalsColumn{"latency_s", &T::latency_s},
                                          TotalsColumn{"latency_low_s", &T::latency_low_s},
                                          TotalsColumn{"latency_high_s", &T::latency_high_s},
                                          TotalsColumn{"forward_s", &T::forward_s},
                                          TotalsColumn{"backward_s", &T::backward_s},
                                          TotalsColumn{"optimizer_s", &T::optimizer_s},
                                          TotalsColumn{"ttft_s", &T::ttft_s},
                                          TotalsColumn{"tpot_s", &T::tpot_s},
                                          TotalsColumn{"tokens_per_s", &T::tokens_per_s},
                                          TotalsColumn{"flops", &T::flops},
                                          TotalsColumn{"bytes", &T::bytes},
                                          TotalsColumn{"parameters", &T::parameters},
                                          TotalsColumn{"utilization_ratio", &T::utilization_ratio},
                                          TotalsColumn{"peak_bytes", &T::peak_bytes},
                                          TotalsColumn{"fits", &T::fits},
                                          TotalsColumn{"dtype", &T::dtype},
                                          TotalsColumn{"warning_codes", &T::warning_codes},
                                          TotalsColumn{"error", &T::error}};
  return kColumns;
}

}  // namespace tilecast
