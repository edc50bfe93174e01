#pragma once

#include "predict/bound.h"
#include "predict/cost_models.h"
#include "predict/kernel_kinds.h"

namespace tilecast {

/// Times by the kind's law and the residual of the device's class (residual.h), never below the
/// physical bound, with the interval that held-out measurements show (coverage.h). The weights must
/// hold the kind's model.
void estimate_learned(KernelKind kind, const CostBatch& batch, const Weights& weights);

/// The least time that the data sheet allows a kernel of the kind.
Bound bound_of(KernelKind kind, const Kernel& kernel, const Device& device,
               const Conditions& conditions);

/// What a calibration moves the constants of a kind's law by, as far as the device resembles the
/// calibrated one.
LawScales calibrated_scales(KernelKind kind, const Weights& weights, const Device& device);

}  // namespace tilecast
