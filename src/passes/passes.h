#pragma once

#include "graph/graph.h"
#include "graph/scheme.h"

namespace tilecast {

enum class Optimizer { kNone, kSgd, kAdam, kAdamW };

/// Appends what autograd launches for the gradient of every weight, accumulation into the stored
/// gradients included. The gradients of the model's outputs are taken as given (no loss).
/// Throws Error{kUnsupported} where nothing in the graph is trained.
void add_backward(Graph& graph);

/// Mixed precision as torch.autocast has it, before the backward pass is added to a graph in fp32:
/// products and attention in `narrow`, their operands cast to it, the weights' masters left in
/// fp32; powers, roots, softmax and norms in fp32; the rest in what it is given.
void autocast(Graph& graph, DType narrow);

/// Stores the weights of linear layers in few bits, for inference. The output layer and tables that
/// are looked up keep their type, as in the usual checkpoints.
void quantize_linears(Graph& graph, Scheme scheme);

/// Appends the optimizer's step as PyTorch's default multi-tensor kernels run it.
void add_optimizer(Graph& graph, Optimizer optimizer);

/// Replaces chains of pointwise operators by one kernel each, with the sum of their FLOPs and only
/// the traffic that leaves the chain.
void fuse_pointwise(Graph& graph);

}  // namespace tilecast
