#pragma once

#include "graph/graph.h"

namespace tilecast {

enum class Optimizer { kNone, kSgd, kAdam, kAdamW };

/// Appends what autograd launches for the gradient of every weight, accumulation into the stored
/// gradients included. The gradients of the model's outputs are taken as given (no loss).
/// Throws Error{kUnsupported} where nothing in the graph is trained.
void add_backward(Graph& graph);

/// Appends the optimizer's step as PyTorch's default multi-tensor kernels run it.
void add_optimizer(Graph& graph, Optimizer optimizer);

/// Replaces chains of pointwise operators by one kernel each, with the sum of their FLOPs and only
/// the traffic that leaves the chain.
void fuse_pointwise(Graph& graph);

}  // namespace tilecast
