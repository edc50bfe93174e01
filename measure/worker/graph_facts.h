#pragma once

#include <cuda_runtime_api.h>

#include "request.h"

namespace tilecast::measure {

/// Launches of a captured graph: `kernel_count` and of the kernel with the most blocks
/// `kernel_name`, `grid`, `block`, `shared_bytes`, `registers`, `blocks_per_sm`. Empty fields are
/// left out where the driver does not tell.
Fields graph_facts(cudaGraph_t graph);

}  // namespace tilecast::measure
