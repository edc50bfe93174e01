// The GPU that a trace was made on.

#include "profile/traced_gpu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "devices/registry.h"

namespace tilecast {
namespace {

/// By the number of its SMs and its memory.
bool has_size_of(const Device& device, const TracedDevice& traced,
                 const TraceConstants& constants) {
  const Gpu* gpu = std::get_if<Gpu>(&device.chip);
  const double ratio = static_cast<double>(traced.memory_bytes) /
                       static_cast<double>(std::max<int64_t>(1, device.memory_bytes));
  return gpu != nullptr && gpu->sm_count == traced.sm_count &&
         std::abs(ratio - 1) <= constants.driver_memory_share;
}

}  // namespace

const TracedDevice* traced_device(const ProfilerTrace& trace) {
  std::map<int32_t, int64_t> by_device;
  for (const DeviceEvent& event : trace.events) by_device[event.device] += event.duration_ns;
  const auto most =
      std::max_element(by_device.begin(), by_device.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const TracedDevice& device : trace.devices)
    if (most != by_device.end() && device.id == most->first) return &device;
  return trace.devices.empty() ? nullptr : &trace.devices.front();
}

std::optional<Device> known_device(const TracedDevice& traced, const TraceConstants& constants) {
  for (std::string name = traced.name; !name.empty();) {
    const bool is_whole = name.size() == traced.name.size();
    for (const Device& device : bundled_devices())
      if (is_named(device, name) && (is_whole || has_size_of(device, traced, constants)))
        return device;
    const size_t space = name.find_last_of(' ');
    name = space == std::string::npos ? "" : name.substr(0, space);
  }
  std::optional<Device> found;
  for (const Device& device : bundled_devices()) {
    if (!has_size_of(device, traced, constants)) continue;
    if (found) return std::nullopt;
    found = device;
  }
  return found;
}

}  // namespace tilecast
