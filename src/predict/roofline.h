#pragma once

#include "predict/cost_models.h"

namespace tilecast {

inline constexpr std::string_view kRoofline = "roofline";

/// KernelTime::extrapolated_feature of kernels for which no model was learned.
inline constexpr std::string_view kNoModel = "model";

/// The baseline: max(FLOPs / peak, bytes / DRAM bandwidth), without an interval. Throws
/// Error{kUnsupported} where the device has no unit for the kernel's dtype.
KernelTime roofline_time(const Kernel& kernel, const Device& device);

/// The cost model of kernels that no other covers: the latency floor plus the roofline, flagged
/// as extrapolated. Its interval reaches from the bound itself to four times the forecast (guess:
/// measured kernels mostly use a quarter to all of what the data sheet allows; a model of such
/// kernels would settle it).
void estimate_unlearned(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
