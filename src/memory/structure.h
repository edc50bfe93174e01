#pragma once

#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// By tensor: the one that owns its memory, itself or the base of a view; -1: none. A node that
/// takes time only passes its input on.
std::vector<TensorId> find_storage(const Graph& graph);

/// Whether the body of a forward segment is a single layer, by its residual sums: self-attention,
/// cross-attention, MLP.
bool is_one_layer(const Graph& graph, const Segment& segment);

/// By node of a body, whether it is the sum that ends a layer: that of a sublayer without
/// attention, or each, if all have attention.
std::vector<bool> layer_ends(const Graph& graph, const Segment& segment);

}  // namespace tilecast
