#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// What changing one option would do to the memory of a pass, the smallest peak first: for
/// `MemoryForecast::remedies`. Apart from the forecast, since it builds the graphs of many batches.
/// Throws Error.
std::vector<MemoryRemedy> memory_remedies(const ModelRef& model, const GpuRef& gpu,
                                          const Request& request);

/// What reports show of the memory beside the forecast: fills in its remedies if the model does not
/// fit, and returns the largest batch that fits; nullopt with several ranks. Throws Error.
std::optional<int64_t> add_remedies(Forecast& forecast, const Forecaster& forecaster,
                                    const ModelRef& model, const GpuRef& gpu,
                                    const Request& request);

}  // namespace tilecast
