#pragma once

// A single request on an idle server. Its relative errors stand for the errors of a loaded server,
// whose steps have more sequences: on GPUs whose class was not measured, larger batches are less
// certain.

#include <cmath>
#include <optional>

#include "scenario/internal.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// Result of forecast_generation for a request of mean lengths, in a batch of its own: times with
/// intervals, steps, and the warnings about these. Totals, memory and what clients see under load
/// are left out.
GenerationForecast forecast_alone(const Forecaster& forecaster, const ModelRef& model,
                                  const GpuRef& gpu, const Request& request);

struct OtherPools;
struct ServedModel;

/// Power of a server under the load that gives `serving`: the kernels of as many sequences as its
/// steps have in the mean, in the time in which so many requests are answered. nullopt with prefill
/// workers and where power is not forecast.
std::optional<PowerForecast> power_under_load(const ServedModel& served, const OtherPools& others,
                                              const Request& asked,
                                              const GenerationForecast::Serving& serving);

/// How far times under load are off beside the errors of a single request, as logarithms of the
/// interval's ends: the server's own work and its queue.
struct LoadSpread {
  double low_log = 0, high_log = 0;
};
inline LoadSpread ttft_spread(const Forecaster& forecaster) {
  const IntervalConstants& c = forecaster.impl().weights.laws.intervals;
  return {c.server_ttft_low_log, c.server_ttft_high_log};
}
/// Of the times of further tokens, and of whole requests.
inline LoadSpread tpot_spread(const Forecaster& forecaster) {
  const IntervalConstants& c = forecaster.impl().weights.laws.intervals;
  return {c.server_tpot_low_log, c.server_tpot_high_log};
}

/// Of the times between tokens.
inline LoadSpread itl_spread(const Forecaster& forecaster) {
  const IntervalConstants& c = forecaster.impl().weights.laws.intervals;
  return {c.server_itl_low_log, c.server_itl_high_log};
}

/// A time under load. Its interval joins that of a single request, relative to its time, and the
/// load's own spread as independent errors. Without an interval of a single request it has none.
inline Interval under_load(const Interval& alone, double seconds, const LoadSpread& spread) {
  if (alone.value <= 0 || alone.low == alone.high) return {seconds, seconds, seconds};
  return {seconds,
          seconds * std::exp(-std::hypot(std::log(alone.value / alone.low), spread.low_log)),
          seconds * std::exp(std::hypot(std::log(alone.high / alone.value), spread.high_log))};
}

}  // namespace tilecast
