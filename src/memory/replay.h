#pragma once

#include <cstdint>

#include "memory/lifetimes.h"

namespace tilecast {

/// State of the allocator at the end.
struct AllocatorResult {
  int64_t allocated_bytes = 0;  ///< the most in use; torch.cuda.max_memory_allocated
  int64_t reserved_bytes = 0;   ///< torch.cuda.max_memory_reserved
};

/// Runs the allocations of two passes through a caching allocator, after the weights' allocations,
/// optimizer states, inputs and a workspace. `lifetimes` must not be folded. The optimizer's
/// temporaries of all parameters are allocated one parameter after the other.
AllocatorResult replay_allocations(const Graph& graph, const Lifetimes& lifetimes,
                                   ZeroGrad zero_grad, int64_t workspace_bytes);

}  // namespace tilecast
