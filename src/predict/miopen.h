#pragma once

#include "predict/cost_models.h"

namespace tilecast {

/// Whether one of MIOpen's solvers takes the convolution on the device, which must be AMD's.
bool runs_in_miopen(const Kernel& kernel, const Device& device);

/// Convolutions of AMD's GPUs: the time of the solver that the solver model (src/tuning) ranks
/// first, which KernelTime::predictor names: "miopen:ConvAsm1x1U". Never below what the data sheet
/// allows the traffic; FLOPs are no bound, for Winograd's solvers need fewer.
/// Accuracy: docs/explanation/tuning.md. Not modelled: padding and axes that differ (a kernel
/// states one stride; padding is taken as half the window), `--calibration`, caches other than
/// MIOpen's own measurements had.
void estimate_miopen(const CostBatch& batch, const Weights& weights);

}  // namespace tilecast
