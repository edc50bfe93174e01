#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// Effects of other options on the memory of a pass: for `PassMemory::remedies`. All that save
/// a percent or more by one option, the smallest peak first. If none of these is enough, then pairs
/// that are, the smallest change of the peak first, and if there is none, all together. With
/// several ranks, options keep the number of GPUs. Apart from the forecast, since it builds the
/// graphs of many requests. Throws Error.
std::vector<MemoryRemedy> memory_remedies(const Forecaster& forecaster, const ModelRef& model,
                                          const GpuRef& gpu, const Request& request);

/// Facts about memory that reports show beside the forecast: fills in its remedies if the model
/// does not fit, else what the caching allocator takes if it hardly fits, and the largest batch
/// that fits (nullopt with several ranks). Throws Error.
void add_remedies(Forecast& forecast, const Forecaster& forecaster, const ModelRef& model,
                  const GpuRef& gpu, const Request& request);

}  // namespace tilecast
