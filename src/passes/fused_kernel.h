#pragma once

// What the passes that fuse operators have in common.

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// For each tensor, how often nodes, the graph's outputs and losses, and carries read it.
std::vector<int> use_counts(const Graph& graph);

/// One kernel for `nodes`, at most one of which is an operator over rows: that with a RowFusion.
/// `flops`: of each element, of all others. `made`: whether one of the nodes, or a view between
/// them, makes a tensor; `written`: whether such a tensor is read elsewhere.
Node fused_kernel(const Graph& graph, std::span<const Node> nodes, int64_t flops,
                  const std::function<bool(TensorId)>& made,
                  const std::function<bool(TensorId)>& written);

}  // namespace tilecast
