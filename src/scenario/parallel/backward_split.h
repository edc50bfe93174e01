#pragma once

// The backward pass in two: gradients of inputs, for which the stage before waits, and gradients of
// weights (zero-bubble schedules). Products whose results go to gradients of weights alone are of
// the second, with the sums that they are added to; all else is of the first, also the gradients of
// biases and norms, as in the authors' WeightGradStore (Qi et al. 2023).

#include <vector>

#include "scenario/timed_pass.h"

namespace tilecast {

struct BackwardSplit {
  double weights_share = 0;  ///< of the time of the backward pass's kernels
  /// Bytes of a micro-batch that gradients of weights read: inputs of layers, and gradients of
  /// their outputs.
  int64_t kept_bytes = 0;
};
BackwardSplit split_backward(const TimedPass& pass);

/// By launch of the graph's program: whether it belongs to the gradients of weights.
std::vector<bool> weight_gradient_launches(const Graph& graph, const Program& program);

}  // namespace tilecast
