#pragma once

#include "api/scenario.h"

namespace tilecast {

/// A forward pass on an accelerator.
Result run_accelerator(const Inquiry& inquiry);

}  // namespace tilecast
