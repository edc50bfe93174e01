#pragma once

// What 'tilecast plan' has for training and for serving.

#include <string>
#include <vector>

#include "cli/command.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// The prices that --price-per-gpu-hour gives; empty: it was not given.
std::vector<double> prices_of(const Given& given, const std::vector<GpuRef>& gpus);

/// With --prompt.
void run_serving_plan(const Given& given);
/// Options of serving alone.
OptionGroup serving_plan_options();

}  // namespace tilecast
