#pragma once

#include "predict/bound.h"
#include "predict/cost_models.h"
#include "predict/nets.h"

namespace tilecast {

/// Utilization learned from measurements, inside the physical bounds (efficiency.h), with the
/// interval that held-out measurements show (coverage.h). The weights must hold the kind's model.
void estimate_learned(NetKind kind, const CostBatch& batch, const Weights& weights);

/// A kernel as its kind's model sees it.
struct Described {
  Bound bound;
  Tile tile;  ///< that the vendor's library is taken to pick; the usual one where nothing tells
  Features features;
};
/// `device`: as it runs under the conditions (running_device).
Described describe(const Weights& weights, NetKind kind, const Kernel& kernel, const Device& device,
                   const Conditions& conditions);

}  // namespace tilecast
