#pragma once

#include <functional>
#include <string_view>

#include "graph/graph.h"
#include "graph/scheme.h"
#include "ops/decompose.h"
#include "tilecast/choices.h"

namespace tilecast {

/// Writes what eager PyTorch launches for a graph of modules.
Graph decompose(Graph modules, const EagerForm& form);

/// One rank's share of a graph of modules, of `ranks` that divide it tensor by tensor; they divide
/// heads and inner columns. Where operators need the whole of what ranks have shares of,
/// all-reduces come in.
Graph shard(const Graph& modules, int64_t ranks);

/// Appends what autograd launches for the gradient of every weight, accumulation into the stored
/// gradients included. The gradients of the model's outputs are taken as given (no loss).
/// Throws Error{kUnsupported} where nothing in the graph is trained.
void add_backward(Graph& graph);

/// Mixed precision as torch.autocast has it, before the backward pass is added to a graph in fp32:
/// products, convolutions and attention in `low_precision`, their operands cast to it, the weights
/// left in fp32; powers, roots, softmax and norms in fp32; the rest in what it is given. A weight
/// is cast once, and the copy is kept to the end of the forward pass (autocast's cache).
void autocast(Graph& graph, DType low_precision);

/// How a linear layer or a layer of experts is stored, by the name of its node.
using SchemeOf = std::function<QuantScheme(std::string_view node)>;

/// Stores the weights of linear layers and experts in few bits, for inference. The output layer and
/// tables that are looked up keep their type, as in the usual checkpoints.
void quantize_linears(Graph& graph, const SchemeOf& scheme_of);

struct OptimizerStep {
  Optimizer optimizer = Optimizer::kNone;
  /// Gradients are of a scaled loss (fp16 autocast with a GradScaler): one more pass over them.
  bool scaled_gradients = false;
};

/// Appends the optimizer's step as PyTorch's default multi-tensor kernels run it. States have the
/// parameters' type; no second copy of the parameters is kept.
void add_optimizer(Graph& graph, const OptimizerStep& step);

/// Replaces chains of pointwise operators by one kernel each, with the sum of their FLOPs and only
/// the traffic that leaves the chain.
void fuse_pointwise(Graph& graph);

}  // namespace tilecast
