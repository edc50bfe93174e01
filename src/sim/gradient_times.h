#pragma once

// When the gradients of a training step are there, for reductions that overlap the backward pass.

#include <cstdint>
#include <span>
#include <vector>

#include "lower/program.h"

namespace tilecast {

/// The last contribution to the gradient of one weight of one layer.
struct ReadyGradient {
  double ready_s = 0;  ///< from the start of the backward pass
  int64_t bytes = 0;
  TensorId gradient = -1;
};

/// The gradients of a training step, in the order in which they are ready. `program` is that of
/// `graph`; the other arguments as for `simulate`.
std::vector<ReadyGradient> gradients_ready(const Graph& graph, const Program& program,
                                           std::span<const double> kernel_s, double host_launch_s);

}  // namespace tilecast
