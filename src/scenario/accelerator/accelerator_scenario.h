#pragma once

#include "scenario/scenario.h"

namespace tilecast {

/// A forward pass on an accelerator.
Result run_accelerator(const Inquiry& inquiry);

}  // namespace tilecast
