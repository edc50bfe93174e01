#pragma once

// The scenarios of text generation: a static batch, and a server.

#include "api/scenario.h"

namespace tilecast {

Result run_generation(const Inquiry& inquiry);

}  // namespace tilecast
