#pragma once

// A GPU that does not exist: a known one with other numbers,
// "H100:sm_count=160,memory_bytes=192e9". Goals: how forecasts follow from bandwidth, SMs, clock,
// rates and memory. Non-goals: other words (architecture, type of memory): a device file states
// those.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/device.h"

namespace tilecast {

/// A number of a device that can be set.
struct DeviceNumber {
  std::string_view name, unit;
  bool is_whole = false;
  std::string_view about;
};

/// All of them. Rates are set by dtype, links by kind: "matrix_flops_per_s.bf16",
/// "link_bytes_per_s.nvlink".
std::span<const DeviceNumber> device_numbers();

/// The number of that name; nullptr: there is none.
const DeviceNumber* find_device_number(std::string_view name);

/// The names of all numbers, for messages.
std::vector<std::string> device_number_names();

using GivenNumbers = std::vector<std::pair<std::string, double>>;

/// The GPU with these numbers, each named once. Peak rates are per SM and clock: they scale with
/// `sm_count` and `boost_clock_hz` unless they are given as well. All else stays: power, caches and
/// architecture are those of the known GPU. Throws Error{kInput} for an unknown name and a value
/// that is not possible, Error{kUnsupported} for a device that is no GPU, and for a slice.
Device with_numbers(const Device& device, const GivenNumbers& numbers);

/// What is before the numbers behind the last colon, and these; without numbers where there is no
/// "=" behind it. Throws Error{kInput} for what is not NAME=NUMBER.
std::pair<std::string, GivenNumbers> split_numbers(const std::string& name_or_path);

}  // namespace tilecast
