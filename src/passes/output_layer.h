#pragma once

#include "graph/graph.h"

namespace tilecast {

/// Whether a node computes an output of the model, also where the logits are scaled or capped
/// afterwards, or where variables are held beside them.
bool is_output_layer(const Graph& graph, const Node& node);

}  // namespace tilecast
