#pragma once

#include <string>
#include <vector>

#include "tilecast/result.h"

namespace tilecast {

/// "gpt2_large on NVIDIA H100: memory of training, batch 4, …"
std::string memory_title(const MemoryTimeline& timeline);

}  // namespace tilecast
