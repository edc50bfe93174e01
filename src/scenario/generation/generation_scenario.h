#pragma once

// The scenarios of text generation: a static batch, and a server.

#include "scenario/scenario.h"

namespace tilecast {

Result run_generation(const Inquiry& inquiry);

}  // namespace tilecast
