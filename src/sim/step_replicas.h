#pragma once

// The data-parallel replicas of a training step that are simulated: equal ones are one.

#include <vector>

#include "sim/training_step.h"

namespace tilecast {

struct SimulatedReplicas {
  /// By replica and stage: how much longer kernels take. A replica computes at the pace of its
  /// slowest rank, stage by stage.
  std::vector<std::vector<double>> factors;
  std::vector<int64_t> numbers;  ///< of each replica in the step
};

SimulatedReplicas simulated_replicas(const TrainingStep& step, Folding folding);

/// The replica whose stages are slowest in sum.
size_t slowest_replica(const SimulatedReplicas& replicas);

}  // namespace tilecast
