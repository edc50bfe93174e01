#pragma once

#include <string>

#include "tilecast/result.h"

namespace tilecast {

/// "gpt2 on NVIDIA T4: power over 60.0 s of a server under load".
std::string power_title(const PowerTimeline& timeline);

}  // namespace tilecast
