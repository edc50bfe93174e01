#pragma once

// A single request on an idle server. Its relative errors stand for the errors of a loaded server,
// whose steps have more sequences: on GPUs whose class was not measured, larger batches are less
// certain.

#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// Result of forecast_generation for a request of mean lengths, in a batch of its own: times with
/// intervals, steps, and the warnings about these. Totals, memory and what clients see under load
/// are left out.
GenerationForecast forecast_alone(const Forecaster& forecaster, const ModelRef& model,
                                  const GpuRef& gpu, const Request& request);

/// A time under load, with an interval as wide, relative to it, as that of a single request. Queues
/// increase the uncertainty; this is not modelled.
inline Interval with_interval_of(const Interval& alone, double seconds) {
  if (alone.value <= 0) return {seconds, seconds, seconds};
  return {seconds, seconds * alone.low / alone.value, seconds * alone.high / alone.value};
}

}  // namespace tilecast
