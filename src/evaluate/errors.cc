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
    errors.push_back(100 * std::abs(s.forecast / s.measured - 1));
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

}  // namespace tilecast
