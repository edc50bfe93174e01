#include "devices/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>

#include "base/ascii.h"
#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "devices/device_numbers.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The bundled files are about 5 kB each.
constexpr uint64_t kMaxDeviceBytes = uint64_t{1} << 20;

/// Set once `bundled_devices` holds all files.
std::atomic<bool> all_are_read = false;

/// Reads only the files whose text has the name somewhere: reading all takes 4 ms, which a program
/// that starts for one forecast would wait for. Once all were read, they are searched instead.
std::optional<Device> find_bundled(std::string_view name) {
  const std::string wanted = normalized_name(name);
  if (all_are_read) {
    for (const Device& device : bundled_devices()) {
      if (is_named(device, name)) return device;
    }
    return std::nullopt;
  }
  for (const EmbeddedFile& file : embedded_files("devices/")) {
    if (normalized_name(file.content).find(wanted) == std::string::npos) continue;
    Device device = parse_device(file.content, std::string(file.path));
    if (is_named(device, name)) return device;
  }
  return std::nullopt;
}

}  // namespace

const std::vector<Device>& bundled_devices() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> all;
    for (const EmbeddedFile& file : embedded_files("devices/"))
      all.push_back(parse_device(file.content, std::string(file.path)));
    all_are_read = true;
    return all;
  }();
  return devices;
}

bool is_named(const Device& device, std::string_view name) {
  const std::string wanted = normalized_name(name);
  const auto same = [&](const std::string& other) { return normalized_name(other) == wanted; };
  const bool has_vendor = device.id.starts_with(device.vendor + "-");
  return same(device.id) || same(device.name) ||
         (has_vendor && same(device.id.substr(device.vendor.size() + 1))) ||
         std::any_of(device.aliases.begin(), device.aliases.end(), same);
}

std::pair<std::string, std::string> split_slice(const std::string& name_or_path) {
  // Profiles are named like 3g.40gb.
  const size_t colon = name_or_path.rfind(':');
  if (colon == std::string::npos || colon + 2 >= name_or_path.size() ||
      !is_digit(name_or_path[colon + 1]) || to_lower(name_or_path[colon + 2]) != 'g' ||
      name_or_path.find('/', colon) != std::string::npos)
    return {name_or_path, ""};
  return {name_or_path.substr(0, colon), name_or_path.substr(colon + 1)};
}

bool names_bundled_device(std::string_view name) { return find_bundled(name).has_value(); }

Device find_device(const std::string& name_or_path) {
  if (const auto [device, numbers] = split_numbers(name_or_path); !numbers.empty())
    return with_numbers(find_device(device), numbers);
  if (const auto [device, profile] = split_slice(name_or_path); !profile.empty())
    return slice_of(find_device(device), profile);
  if (is_path(name_or_path))
    return parse_device(read_file(name_or_path, kMaxDeviceBytes), printable(name_or_path));
  if (std::optional<Device> bundled = find_bundled(name_or_path)) return *std::move(bundled);
  std::vector<std::string> names;
  for (const Device& device : bundled_devices()) {
    names.push_back(device.id);
    names.insert(names.end(), device.aliases.begin(), device.aliases.end());
  }
  throw Error(ErrorKind::kNotFound,
              fmt::format("unknown GPU '{}'{}; 'tilecast gpus' lists all, or give the path of a "
                          "device file (.json)",
                          shown_name(name_or_path), did_you_mean(name_or_path, names)));
}

}  // namespace tilecast
