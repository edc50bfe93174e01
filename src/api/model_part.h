#pragma once

// One rank's share of a part of the model: its graph, its times, and when its gradients are there.

#include <vector>

#include "api/collective_costs.h"
#include "api/pass.h"
#include "api/timed_pass.h"
#include "sim/training_step.h"

namespace tilecast {

struct ModelPart {
  TimedPass pass;
  PartLoad load;
  double optimizer_s = 0;
  int64_t weights_bytes = 0;
  /// Of gradients, as they are reduced.
  int64_t gradient_bytes = 0;
  double reduce_s = 0;  ///< all gradients in one piece, after the backward pass
  double copy_out_s = 0;
};

/// The graph of one rank: forward and backward pass of one micro-batch, and the optimizer step.
Graph part_graph(const PassSetup& setup, const ParallelPlan& plan, const LayerRange& layers);

ModelPart make_part(const PassSetup& setup, const ParallelPlan& plan, const LayerRange& layers,
                    const TimingSetup& timing, const CollectiveCosts& costs);

}  // namespace tilecast
