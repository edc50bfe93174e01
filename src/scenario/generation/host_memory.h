#pragma once

// The host's memory as a second cache of blocks.

#include "scenario/generation/served_model.h"
#include "sim/serving.h"

namespace tilecast {

/// Bytes a second at which a GPU reads blocks of the host's memory: the rate of the device's link
/// to the host (NVLink-C2C, else PCIe), by what the software's copies reach of it. Throws
/// Error{kUnsupported} if the device's file names no such link; `option` needs it.
double host_bytes_per_s(const ServedModel& served, const char* option = "kv-offloading-size");

/// Adds the blocks that the host's memory has room for, and the time to read one.
void add_host_memory(ServerLimits& limits, const ServedModel& served);

}  // namespace tilecast
