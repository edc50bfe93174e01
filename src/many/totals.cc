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

/// A request on an idle server says nothing of the load: its numbers are replaced.
void set_load(ForecastTotals& t, const std::optional<GenerationForecast::Serving>& serving) {
  t.ttft_s = t.tpot_s = t.tokens_per_s = std::nullopt;
  if (!serving) {
    t.latency_s.reset();
    t.utilization_ratio.reset();
    return;
  }
  const ServerMetrics& part = serving->steady_or_all();
  t.ttft_s = part.ttft.p99.value;
  t.tpot_s = part.tpot.p99.value;
  t.tokens_per_s = part.output_tokens_per_s;
}

void set_power(ForecastTotals& t, const std::optional<PowerForecast>& power) {
  if (!power) return;
  t.power_w = power->power_w.value;
  t.energy_j = power->energy_j.value;
  t.energy_per_token_j = power->energy_per_token_j;
  if (power->gpu_cost || power->energy_cost)
    t.cost = power->gpu_cost.value_or(0) + power->energy_cost.value_or(0);
  t.cost_per_million_tokens = power->cost_per_million_tokens;
}

/// What forecasts of passes and of generation have both.
template <typename F>
ForecastTotals common_totals(const F& f, const Interval& latency) {
  ForecastTotals t{.latency_s = latency,
                   .tokens_per_s = f.tokens_per_s,
                   .flops = f.flops,
                   .bytes = f.bytes,
                   .parameters = f.parameters,
                   .utilization_ratio = f.utilization_ratio,
                   .peak_bytes = f.memory.peak_bytes,
                   .fits = f.memory.fits,
                   .dtype = f.dtype,
                   .warning_codes = codes_of(f.warnings)};
  set_power(t, f.power);
  return t;
}

}  // namespace

ForecastTotals totals_of(const Forecast& f) {
  ForecastTotals t = common_totals(f, f.latency_s);
  t.forward_s = f.forward_s;
  t.backward_s = f.backward_s;
  t.optimizer_s = f.optimizer_s;
  return t;
}

ForecastTotals totals_of(const GenerationForecast& f) {
  ForecastTotals t = common_totals(f, f.latency);
  t.ttft_s = f.ttft.value;
  t.tpot_s = f.tpot.value;
  if (f.continuous) set_load(t, f.serving);
  return t;
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
