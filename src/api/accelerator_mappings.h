#pragma once

// A file with a mapping for each layer:
//
// {"schema_version": 1, "layers": [
//   {"kind": "product", "sizes": "k 64, c 3, p 112, q 112, r 7, s 7, stride 2",
//    "mapping": "order=kp tile=k32,c3,p28,q112,r7,s7"}]}
//
// An entry is for the layers that have its `layer` (the name), its `kind` and its `sizes`, as far
// as it states them. One that states the name comes before others.

#include "api/accelerator_pass.h"

namespace tilecast {

/// Gives launches the mappings of the file of the options. Throws Error{kInput}: also for an entry
/// that no layer has, and for two that are for the same layer.
void assign_mappings(std::vector<PassLayer>& launches, const accelerator::Design& design,
                     const AcceleratorOptions& options);

}  // namespace tilecast
