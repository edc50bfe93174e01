#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// A warning that names the kernels of which the weights hold no model, with their share of the
/// time; nullopt where there are none.
std::optional<std::string> missing_models(const std::vector<KernelForecast>& kernels);

}  // namespace tilecast
