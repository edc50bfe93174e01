#pragma once

// Chips that no law describes (devices/vendor.h, is_systolic): the roofline at the shares of the
// data sheet that kernels of measured data-center GPUs reach. Forecasts say so.

#include "predict/cost_models.h"

namespace tilecast {

inline constexpr std::string_view kClassRoofline = "class_roofline";

/// KernelTime::extrapolated_feature of such forecasts.
inline constexpr std::string_view kUnmeasuredArchitecture = "architecture";

/// Everything but collectives, on such a chip.
bool is_known_by_class(const Kernel& kernel, const Device& device);

/// Throws Error{kUnsupported} where the device has no unit for a kernel's dtype.
void estimate_by_class(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
