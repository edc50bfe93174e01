#include "train/interval_fit.h"

#include <algorithm>
#include <cmath>

#include "base/quantile.h"
#include "predict/weights.h"

namespace tilecast {
namespace {

/// Of values in order, each with its weight.
double weighted_quantile(const std::vector<std::pair<double, double>>& values, double q) {
  double total = 0;
  for (const auto& [value, weight] : values) total += weight;
  double sum = 0;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= q * total) return value;
  }
  return values.empty() ? 0 : values.back().first;
}

}  // namespace

Spread balanced(Spread spread, size_t devices) {
  std::vector<double> total(devices, 0);
  for (const LogError& r : spread) total[r.device] += r.weight;
  for (LogError& r : spread) r.weight /= total[r.device];
  return spread;
}

/// value = log(forecast / measured): the measured time is forecast · exp(-value).
IntervalLaw interval_of(const Spread& spread, size_t devices) {
  constexpr double kLeast = 0.01;  // measurements of one kernel repeat to no better than 1 %
  IntervalLaw interval;
  for (size_t bin = 0; bin < IntervalLaw::kAnchors.size(); ++bin) {
    Spread part;
    for (const LogError& r : spread) {
      if (IntervalLaw::bin_of(r.size) == bin) part.push_back(r);
    }
    // Too few rows of a size: the rows of all sizes.
    std::vector<std::pair<double, double>> values;
    for (const LogError& r : balanced(part.size() < kFewestOfSize ? spread : part, devices))
      values.emplace_back(r.value, r.weight);
    std::sort(values.begin(), values.end());
    interval.low_log[bin] = std::min(-kLeast, -weighted_quantile(values, (1 + kCoverage) / 2));
    interval.high_log[bin] = std::max(kLeast, -weighted_quantile(values, (1 - kCoverage) / 2));
  }
  return interval;
}

IntervalLaw both_ways(IntervalLaw interval) {
  constexpr double kShare = 0.5;
  for (size_t i = 0; i < interval.low_log.size(); ++i) {
    const double low = interval.low_log[i], high = interval.high_log[i];
    interval.low_log[i] = std::min(low, -kShare * high);
    interval.high_log[i] = std::max(high, -kShare * low);
  }
  return interval;
}

NeededFactor factor_needed(const LogError& row, const IntervalLaw& interval) {
  const IntervalLaw::Logs logs = interval.at(row.size);
  const double side = -row.value > 0 ? logs.high : -logs.low;
  return {std::abs(row.value) / side, side, logs.high - logs.low};
}

PrecisionWidths widths_of_rows(const Spread& rows, const IntervalLaw& interval) {
  constexpr double kLeast = 0.25, kMost = 4;
  std::vector<std::pair<PrecisionWidth, std::vector<double>>> precisions;
  for (const LogError& row : rows) {
    const Combination& c = row.combination;
    const PrecisionWidth of{c.dtype, c.kv_dtype, c.scheme};
    auto found = std::find_if(precisions.begin(), precisions.end(),
                              [&](const auto& precision) { return precision.first == of; });
    if (found == precisions.end()) found = precisions.insert(found, {of, {}});
    found->second.push_back(factor_needed(row, interval).factor);
  }
  PrecisionWidths widths;
  for (auto& [precision, factors] : precisions) {
    if (factors.size() < kFewestOfSize) continue;
    precision.factor = std::clamp(quantile(factors, kCoverage), kLeast, kMost);
    widths.push_back(precision);
  }
  return widths;
}

IntervalLaw scaled(IntervalLaw interval, double factor) {
  for (double& log : interval.low_log) log *= factor;
  for (double& log : interval.high_log) log *= factor;
  return interval;
}

}  // namespace tilecast
