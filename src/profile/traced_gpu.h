#pragma once

// The GPU that a trace was made on.

#include <optional>

#include "devices/device.h"
#include "laws/trace.h"
#include "profile/trace.h"

namespace tilecast {

/// The device that most of the time was spent on; nullptr: the trace states none.
const TracedDevice* traced_device(const ProfilerTrace& trace);

/// By its whole name; by its name without words at its end that the database lacks ("MI300X VF"),
/// where the number of its SMs and its memory agree: "RTX 3080 Ti" is no RTX 3080; else by these
/// two, where one device alone has both.
std::optional<Device> known_device(const TracedDevice& traced, const TraceConstants& constants);

}  // namespace tilecast
