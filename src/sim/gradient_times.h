#pragma once

// When the gradients of a training step are there, for reductions that overlap the backward pass.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lower/program.h"
#include "sim/stream.h"

namespace tilecast {

/// The last contribution to the gradient of one weight of one layer.
struct ReadyGradient {
  double ready_s = 0;  ///< from the start of the backward pass, with its copy
  int64_t bytes = 0;
  TensorId gradient = -1;
};

/// The pass whose gradients are reduced.
struct LastPass {
  std::vector<ReadyGradient> gradients;  ///< in the order in which they are ready
  double backward_s = 0;                 ///< of the backward pass, with the copies
  HostFedStream stream;                  ///< at its end, for what follows
};

/// The kernel that copies a gradient of one layer as soon as it is there, in seconds; null: none.
using GradientCopy = std::function<double(TensorId)>;

/// The forward and the backward pass of a training step, with a copy of each gradient. `program` is
/// that of `graph`; the other arguments as for `simulate`.
LastPass run_last_pass(const Graph& graph, const Program& program, std::span<const double> kernel_s,
                       double host_launch_s, const GradientCopy& copy_s = nullptr);

}  // namespace tilecast
