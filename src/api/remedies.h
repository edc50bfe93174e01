#pragma once

#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// What changing one option would do to the memory of a pass, the smallest peak first: for
/// `MemoryForecast::remedies`. Apart from the forecast, since it builds the graphs of many batches.
/// Throws Error.
std::vector<MemoryRemedy> memory_remedies(const ModelRef& model, const GpuRef& gpu,
                                          const Request& request);

}  // namespace tilecast
