#pragma once

// Files with a mapping for each layer (accelerator/mapping_file.h) and the layers of a pass.

#include "scenario/accelerator/pass.h"

namespace tilecast {

/// Gives launches the mappings of the file of the options. Throws Error{kInput}: also for an entry
/// that no layer has, and for two that are for the same layer.
void assign_mappings(std::vector<PassLayer>& launches, const accelerator::Design& design,
                     const AcceleratorOptions& options);

}  // namespace tilecast
