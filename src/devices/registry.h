#pragma once

#include <string>
#include <vector>

#include "devices/device.h"

namespace tilecast {

/// All devices of data/devices, in order of id. Read once, on first use.
const std::vector<Device>& bundled_devices();

/// A device by id or alias (case and punctuation ignored), or the path of a device file.
/// Throws Error{kNotFound} with the nearest names, Error{kInput} for a broken file.
Device find_device(const std::string& name_or_path);

}  // namespace tilecast
