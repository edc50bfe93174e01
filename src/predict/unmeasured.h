#pragma once

// Operators without any measured kernel (OpDef::unmeasured) are forecast by the model of other
// operators. How far that is off is not known: forecasts say so.

#include "predict/predictor.h"

namespace tilecast {

/// The feature that such forecasts name as the one that is outside the training range.
inline constexpr std::string_view kUnmeasuredOperator = "operator";

/// Whether no kernel of the operator was measured. An operator with an attribute `training` was
/// where it is a pointwise kernel, as it is in inference.
bool is_unmeasured(const Kernel& kernel);

/// Widens the interval to what is known of operators that borrow a model, and marks the time as
/// extrapolated.
void mark_unmeasured(const Kernel& kernel, const IntervalConstants& constants, KernelTime& time);

/// How much wider the interval of a device is whose vendor was not measured than that of a new
/// architecture of a measured vendor: a factor on its logarithms. With all of NVIDIA's or of AMD's
/// devices left out it holds 94 % of their kernels, with 1.3 86 %; but the laws saw both, and of
/// whole servers on MI300X 76 % are inside, with 1.3 61 % (research/law_study.md).
inline constexpr double kUnmeasuredVendorRatio = 2;

}  // namespace tilecast
