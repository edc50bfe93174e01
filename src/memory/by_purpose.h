#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "memory/peak.h"

namespace tilecast {

/// Memory of one rank by purpose, and its peak.
struct MemoryByPurpose {
  int64_t weights_bytes = 0;    ///< parameters and buffers: exact
  int64_t gradients_bytes = 0;  ///< one gradient per parameter in training: exact
  int64_t optimizer_bytes = 0;  ///< optimizer states: exact
  int64_t host_bytes = 0;       ///< of the optimizer, in the host's memory: exact
  /// The largest sums of live tensors that nodes compute, before the optimizer step and in it.
  int64_t activations_bytes = 0, optimizer_temporaries_bytes = 0;
  int64_t inputs_bytes = 0;  ///< inputs of the model
  int64_t cache_bytes = 0;   ///< keys and values of earlier tokens: exact
  /// The largest sum of all over the pass; blocks are rounded as PyTorch's allocator does.
  MemoryPeak peak;
  int32_t peak_node = -1;  ///< that runs at the peak; -1: the graph has no nodes
};

/// Walks the graph in execution order; see `find_lifetimes`. Not modelled: memory that kernels use
/// inside one call, and Python references that outlive the last use, except attention's weights.
MemoryByPurpose memory_by_purpose(const Graph& graph, const LifetimeOptions& options = {});

}  // namespace tilecast
