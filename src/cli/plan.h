#pragma once

// What 'tilecast plan' has for training and for serving.

#include <string>
#include <vector>

#include "cli/command.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// "1,2,4", or several of these.
std::vector<std::string> list_of(const Given& given, const std::string& key);
std::vector<int64_t> numbers_of(const Given& given, const std::string& key);
CommandOption list_option(const std::string& name, const std::string& default_value,
                          const std::string& help);
/// The prices that --price-per-gpu-hour gives; empty: it was not given.
std::vector<double> prices_of(const Given& given, const std::vector<GpuRef>& gpus);

/// With --prompt.
void run_serving_plan(const Given& given);
/// Options of serving alone.
OptionGroup serving_plan_options();

}  // namespace tilecast
