#pragma once

// Activation checkpointing: nodes of the forward pass that the backward pass runs again.

#include <vector>

#include "graph/graph.h"
#include "ops/gradient.h"

namespace tilecast {

/// Nodes of the forward pass, computed again in the current segment. The nodes of `copies` are
/// the nodes of the forward pass in their order, with inputs and outputs of the second run.
struct Recomputed {
  int32_t first_node = 0;  ///< of the second run
  std::vector<Node> copies;
};

/// Runs `nodes` again: appends a copy of each to the current segment, in the backward phase. They
/// read each other's copies, and tensors from outside as the originals did.
Recomputed recompute(GradientBuilder& g, const std::vector<Node>& nodes);

/// Removes copies that no later node of the current segment needs: torch.utils.checkpoint stops the
/// second run once all tensors that backward needs are there (early_stop).
void remove_unneeded(Graph& graph, const Recomputed& run);

}  // namespace tilecast
