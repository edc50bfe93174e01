#pragma once

#include <string>
#include <vector>

#include "tilecast/memory.h"

namespace tilecast {

/// The points of one repetition of a segment in one phase: indices into MemoryTimeline::points.
struct MemoryBlock {
  size_t first = 0, last = 0;
  size_t highest = 0;  ///< the point with the most bytes
};
std::vector<MemoryBlock> memory_blocks(const MemoryTimeline& timeline);

/// "gpt2_large on NVIDIA H100: memory of training, batch 4, …"
std::string memory_title(const MemoryTimeline& timeline);

}  // namespace tilecast
