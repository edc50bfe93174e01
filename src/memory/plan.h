#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace tilecast {

/// Memory of one rank by purpose.
struct MemoryPlan {
  int64_t weights_bytes = 0;      ///< parameters and buffers: exact
  int64_t gradients_bytes = 0;    ///< one gradient per parameter in training: exact
  int64_t optimizer_bytes = 0;    ///< optimizer states: exact
  int64_t activations_bytes = 0;  ///< the largest sum of live tensors that nodes compute
  int64_t inputs_bytes = 0;       ///< inputs of the model
  int64_t cache_bytes = 0;        ///< keys and values of earlier tokens: exact
};

/// Walks the graph in execution order. A tensor lives from the node that computes it to the last
/// node that reads it. Views keep their memory alive, and the model's outputs live to the end. Not
/// modelled: allocator rounding and fragmentation, autograd's own bookkeeping, Python references
/// that outlive the last use.
MemoryPlan plan_memory(const Graph& graph);

}  // namespace tilecast
