#pragma once

#include "devices/device.h"
#include "software/software.h"

namespace tilecast {

/// Throws Error{kUnsupported} if the software does not run on the device, with what does.
void check_runs_on(Software software, const Device& device);

}  // namespace tilecast
