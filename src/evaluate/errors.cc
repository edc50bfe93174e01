#include "evaluate/errors.h"

#include <cmath>

#include "base/quantile.h"

namespace tilecast {

EvaluationRow errors_of(const std::vector<ErrorSample>& samples) {
  EvaluationRow row;
  row.count = static_cast<int64_t>(samples.size());
  std::vector<double> errors;
  double log_ratio = 0;
  double inside = 0;
  for (const ErrorSample& s : samples) {
    errors.push_back(error_percent(s.forecast, s.measured));
    log_ratio += std::log(s.forecast / s.measured);
    inside += s.low <= s.measured && s.measured <= s.high ? 1 : 0;
    row.mape_percent += errors.back();
  }
  const auto n = static_cast<double>(samples.size());
  row.mape_percent /= n;
  row.median_percent = quantile(errors, 0.5);
  row.p90_percent = quantile(errors, 0.9);
  row.bias_ratio = std::exp(log_ratio / n);
  row.coverage_percent = 100 * inside / n;
  return row;
}

std::optional<double> kendall_tau(const std::vector<ErrorSample>& samples) {
  const auto order = [](double a, double b) { return a < b ? -1 : a > b ? 1 : 0; };
  int64_t alike = 0, measured_pairs = 0, forecast_pairs = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int of_measured = order(samples[i].measured, samples[j].measured);
      const int of_forecast = order(samples[i].forecast, samples[j].forecast);
      alike += of_measured * of_forecast;
      measured_pairs += of_measured != 0 ? 1 : 0;
      forecast_pairs += of_forecast != 0 ? 1 : 0;
    }
  }
  if (measured_pairs == 0 || forecast_pairs == 0) return std::nullopt;
  return static_cast<double>(alike) /
         std::sqrt(static_cast<double>(measured_pairs) * static_cast<double>(forecast_pairs));
}

}  // namespace tilecast
