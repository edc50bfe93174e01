#pragma once

#include <string>

#include "scenario/scenario.h"

namespace tilecast {

/// Throws Error{kUnsupported} for a request that is not a forward pass, or that has options which
/// accelerators do not know.
void check_runs_on_accelerators(const Request& request);

/// Equal for accelerators whose layers take the same cycles under the same mappings.
std::string timing_key(const AcceleratorRef& device);

/// A forward pass on an accelerator.
Result run_accelerator(const Inquiry& inquiry);

}  // namespace tilecast
