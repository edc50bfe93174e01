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

ForecastTotals totals_of(const GenerationForecast& f) {
  return {.latency_s = f.latency,
          .ttft_s = f.ttft.value,
          .tpot_s = f.tpot.value,
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

ForecastTotals totals_of(const AcceleratorForecast& f) {
  return {.latency_s = f.latency_s(),
          .flops = 2 * f.macs,
          .utilization_ratio = f.utilization_ratio(),
          .dtype = f.operand_dtype};
}

ForecastTotals totals_of(const Result& result) {
  return std::visit([](const auto& forecast) { return totals_of(forecast); }, result);
}

}  // namespace tilecast
