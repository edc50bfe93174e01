#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "tilecast/learn.h"

namespace tilecast {

/// A measurement and its forecast, in any one unit.
struct ErrorSample {
  double measured, forecast, low, high;
};

/// |forecast / measured - 1| in percent.
inline double error_percent(double forecast, double measured) {
  return 100 * std::abs(forecast / measured - 1);
}

/// Errors over all samples, of which there is at least one; names are left empty.
EvaluationRow errors_of(const std::vector<ErrorSample>& samples);

/// Kendall's tau-b: how far the forecasts rank the samples as the measurements do, from 1 (alike)
/// to -1 (in reverse). nullopt where all measurements or all forecasts are equal.
std::optional<double> kendall_tau(const std::vector<ErrorSample>& samples);

/// Sets the errors of a group in another result to those over its samples.
template <typename Errors>
void set_errors(Errors& errors, const std::vector<ErrorSample>& samples) {
  const EvaluationRow row = errors_of(samples);
  errors.count = row.count;
  errors.mape_percent = row.mape_percent;
  errors.median_percent = row.median_percent;
  errors.p90_percent = row.p90_percent;
  errors.bias_ratio = row.bias_ratio;
  errors.coverage_percent = row.coverage_percent;
}

}  // namespace tilecast
