#pragma once

// What a rank has beside the tensors of its model, what it may use of the device's memory, and
// whether its peak fits: the same for a pass on one GPU, for one of many ranks and for a server.
// Not in here: how large the tensors are (src/memory), and what the software of a server grants its
// cache (generation/cache_pool.h).

#include "devices/device.h"
#include "software/software.h"
#include "tilecast/choices.h"
#include "tilecast/result.h"

namespace tilecast {

/// Memory that programs see: without what the driver and error correction take.
int64_t visible_bytes(const Device& device);

/// Workspaces of libraries on the device.
int64_t workspace_bytes(const Device& device, const SoftwareStack& stack, Mode mode);

/// A workspace of a library beside PyTorch.
int64_t extension_workspace_bytes(const Device& device, const SoftwareStack& stack);

/// A rank without tensors: workspace and framework. It may use all that programs see.
Memory bare_rank(const Device& device, const SoftwareStack& stack, Mode mode);

/// Sets the peak: tensors beside workspace and framework. It fits if it is within what may be used.
void set_peak(Memory& memory, int64_t tensors_bytes);
/// The same with the tensors of `at_peak`.
void set_peak(PassMemory& memory);

}  // namespace tilecast
