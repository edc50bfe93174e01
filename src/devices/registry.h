#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/device.h"

namespace tilecast {

/// All devices of data/devices, sorted by id. Read once, on first use.
const std::vector<Device>& bundled_devices();

/// Whether `name` is the device's id, name or an alias; case and punctuation are ignored.
bool is_named(const Device& device, std::string_view name);

/// What is before the profile of a slice, as in "A100-40GB:1g.5gb" or "mine.json:1g.5gb", and the
/// profile; empty where the whole device is meant.
std::pair<std::string, std::string> split_slice(const std::string& name_or_path);

/// Whether a bundled device has this id, name or alias.
bool names_bundled_device(std::string_view name);

/// A device by id, name or alias (case and punctuation ignored), or the path of a device file; with
/// a profile behind a colon, a slice of it; with numbers behind a colon, that GPU with these
/// (device_numbers.h). Throws Error{kNotFound} with the nearest names,
/// Error{kInput} for a broken file.
Device find_device(const std::string& name_or_path);

}  // namespace tilecast
