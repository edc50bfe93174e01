#pragma once

// Values that fused kernels of the backward pass compute again instead of reading them. Goals: what
// a training step keeps for its backward pass if pointwise chains are fused. Non-goals: whole
// layers or attention (Checkpointing). A minimum cut of the whole graph was ruled out: chains are
// short, and their inputs are mostly kept for another reason.

#include "graph/graph.h"

namespace tilecast {

/// `graph`: with a backward pass, after fuse_pointwise; `unfused`: before it. A tensor that a
/// pointwise operator of the forward pass makes, and that only pointwise kernels (and the rows
/// fused with them) of the backward pass read, is not kept if less is kept by keeping what it was
/// made of: these kernels compute it again on the way. Sources: PyTorch's compiler
/// (torch/_functorch/partitioners.py, min_cut_rematerialization_partition, which recomputes what
/// can be fused, but nothing that a matrix product reads); Megatron-LM
/// (core/fusions/fused_bias_gelu.py, fused_bias_swiglu.py, whose functions keep their inputs).
void rematerialize_pointwise(Graph& graph, const Graph& unfused);

}  // namespace tilecast
