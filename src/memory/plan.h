#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace tilecast {

/// Bytes by purpose, of one rank.
struct MemoryPlan {
  int64_t weights_bytes = 0;      ///< parameters and buffers: exact
  int64_t gradients_bytes = 0;    ///< one per parameter while training: exact
  int64_t optimizer_bytes = 0;    ///< optimizer states: exact
  int64_t activations_bytes = 0;  ///< the largest live set of everything nodes make
  int64_t inputs_bytes = 0;       ///< what the caller gives
  int64_t cache_bytes = 0;        ///< keys and values of earlier tokens: exact
};

/// Walks the graph in execution order; a tensor lives from the node that makes it to the last that
/// reads it, views keep the memory behind them alive, and the model's outputs stay to the end.
/// Not modelled: allocator rounding and fragmentation, autograd's own bookkeeping, Python
/// references that outlive the last use.
MemoryPlan plan_memory(const Graph& graph);

}  // namespace tilecast
