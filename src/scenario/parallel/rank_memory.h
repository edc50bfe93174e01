#pragma once

// Memory of one rank of a pipeline stage.

#include <vector>

#include "scenario/parallel/model_part.h"

namespace tilecast {

/// Whether the memory of a rank is that of one pass over its part: one micro-batch, all states on
/// each rank, no copies of the parameters.
bool is_plain(const Request& request, const RankLayout& layout);

/// Memory of the stage with these parts (pointers may repeat). One pass of one micro-batch runs at
/// a time; the tensors that the backward passes of the others need stay in memory.
PassMemory rank_memory(const std::vector<const ModelPart*>& parts, int64_t stage,
                       const PassSetup& setup, const RankLayout& layout);

}  // namespace tilecast
