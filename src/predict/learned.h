#pragma once

#include "predict/cost_models.h"
#include "predict/nets.h"

namespace tilecast {

/// Utilization learned from measurements, inside the physical bounds (efficiency.h), with the
/// interval that held-out measurements show (coverage.h). The weights must hold the kind's model.
void estimate_learned(NetKind kind, const CostBatch& batch, const Weights& weights);

/// The tile that the vendor's library is taken to pick for a kernel of the kind; the usual one
/// where nothing tells.
Tile tile_of(const Weights& weights, NetKind kind, const Kernel& kernel, const Device& device);

}  // namespace tilecast
