#include "devices/device_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/number.h"
#include "base/text.h"
#include "devices/ranges.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// How a number is set; `part` is the dtype or the kind of link behind its dot.
struct SettableNumber {
  DeviceNumber number;
  std::string_view range;  ///< its key in quantity_ranges()
  void (*set)(Device& device, std::string_view part, double value);
};

Gpu& gpu_in(Device& device) { return std::get<Gpu>(device.chip); }

void scale_peaks(Gpu& gpu, double factor) {
  for (double& rate : gpu.vector_flops_per_s) rate *= factor;
  for (double& rate : gpu.matrix_flops_per_s) rate *= factor;
}

double& peak_in(std::array<double, kDTypeCount>& rates, std::string_view dtype) {
  const std::optional<DType> found = find_dtype(dtype);
  if (!found)
    throw Error(ErrorKind::kInput, fmt::format("unknown dtype '{}'; known: {}", shown_name(dtype),
                                               join(dtype_names(), ", ")));
  return rates[static_cast<size_t>(*found)];
}

void set_link(Device& device, std::string_view kind, double bytes_per_s) {
  std::vector<std::string> kinds;
  for (Link& link : device.links) {
    if (link.kind == kind) {
      link.bytes_per_s = bytes_per_s;
      return;
    }
    kinds.push_back(link.kind);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{} has no link '{}'; it has {}", device.id, shown_name(kind),
                          kinds.empty() ? "none" : join(kinds, ", ")));
}

int64_t as_whole(double value) { return static_cast<int64_t>(value); }

// SMs and clock come first: rates that are given replace those that follow from them.
constexpr SettableNumber kNumbers[] = {
    {{"sm_count", "", true, "SMs; peak rates scale with them"},
     "sm_count",
     [](Device& d, std::string_view, double value) {
       scale_peaks(gpu_in(d), value / static_cast<double>(gpu_in(d).sm_count));
       gpu_in(d).sm_count = as_whole(value);
     }},
    {{"boost_clock_hz", "Hz", false, "the highest clock; peak rates scale with it"},
     "boost_clock_hz",
     [](Device& d, std::string_view, double value) {
       scale_peaks(gpu_in(d), value / gpu_in(d).boost_clock_hz);
       gpu_in(d).boost_clock_hz = value;
       if (gpu_in(d).base_clock_hz)
         gpu_in(d).base_clock_hz = std::min(*gpu_in(d).base_clock_hz, value);
     }},
    {{"vector_flops_per_s.", "FLOP/s", false, "peak rate of the vector lanes, by dtype"},
     "flops_per_s",
     [](Device& d, std::string_view dtype, double value) {
       peak_in(gpu_in(d).vector_flops_per_s, dtype) = value;
     }},
    {{"matrix_flops_per_s.", "FLOP/s", false, "peak rate of the matrix units, by dtype"},
     "flops_per_s",
     [](Device& d, std::string_view dtype, double value) {
       peak_in(gpu_in(d).matrix_flops_per_s, dtype) = value;
     }},
    {{"memory_bytes", "bytes", true, "size of the memory"},
     "memory_bytes",
     [](Device& d, std::string_view, double value) { d.memory_bytes = as_whole(value); }},
    {{"memory_bytes_per_s", "bytes/s", false, "bandwidth of the memory"},
     "memory_bytes_per_s",
     [](Device& d, std::string_view, double value) { d.memory_bytes_per_s = value; }},
    {{"l2_bytes", "bytes", true, "second-level cache"},
     "l2_bytes",
     [](Device& d, std::string_view, double value) { gpu_in(d).l2_bytes = as_whole(value); }},
    {{"last_level_cache_bytes", "bytes", true, "cache between the L2 and the memory"},
     "last_level_cache_bytes",
     [](Device& d, std::string_view, double value) {
       gpu_in(d).last_level_cache_bytes = as_whole(value);
     }},
    {{"on_chip_bytes_per_sm", "bytes", true, "L1 and shared memory of an SM"},
     "on_chip_bytes_per_sm",
     [](Device& d, std::string_view, double value) {
       gpu_in(d).on_chip_bytes_per_sm = as_whole(value);
     }},
    {{"register_bytes_per_sm", "bytes", true, "registers of an SM"},
     "register_bytes_per_sm",
     [](Device& d, std::string_view, double value) {
       gpu_in(d).register_bytes_per_sm = as_whole(value);
     }},
    {{"board_power_w", "W", false, "power limit of the board"},
     "board_power_w",
     [](Device& d, std::string_view, double value) {
       gpu_in(d).board_power_w = value;
       gpu_in(d).states_board_power = true;
     }},
    {{"link_bytes_per_s.", "bytes/s", false, "a link in one direction, by kind"},
     "link_bytes_per_s",
     set_link},
};

/// A name that ends in a dot has a part behind it.
bool is_of(const SettableNumber& settable, std::string_view name) {
  const std::string_view known = settable.number.name;
  return known.ends_with('.') ? name.starts_with(known) && name.size() > known.size()
                              : name == known;
}

void check_possible(const SettableNumber& settable, std::string_view name, double value) {
  const std::string why = implausible(settable.range, value);
  if (!why.empty()) throw Error(ErrorKind::kInput, fmt::format("'{}': {}", shown_name(name), why));
  if (settable.number.is_whole && value != std::floor(value))
    throw Error(ErrorKind::kInput,
                fmt::format("'{}': expected a whole number, found {}", shown_name(name), value));
}

void check_known(const GivenNumbers& numbers) {
  std::set<std::string_view> seen;
  for (const auto& [name, value] : numbers) {
    if (find_device_number(name) == nullptr)
      throw Error(ErrorKind::kInput,
                  fmt::format("a GPU has no number '{}'{}; known: {}", shown_name(name),
                              did_you_mean(name, device_number_names()),
                              join(device_number_names(), ", ")));
    if (!seen.insert(name).second)
      throw Error(ErrorKind::kInput, fmt::format("'{}' is given twice", shown_name(name)));
  }
}

/// `stated`: the numbers that the device's id has already.
void check_not_stated(const Device& device, const GivenNumbers& stated, const std::string& name) {
  for (const auto& [other, value] : stated)
    if (other == name)
      throw Error(ErrorKind::kInput, fmt::format("'{}' states {} already: leave one of them out",
                                                 shown_name(device.id), shown_name(name)));
}

/// Between a GPU's name and its numbers.
constexpr std::string_view kWith = " with ";

}  // namespace

std::span<const DeviceNumber> device_numbers() {
  static const std::vector<DeviceNumber> numbers = [] {
    std::vector<DeviceNumber> all;
    for (const SettableNumber& settable : kNumbers) all.push_back(settable.number);
    return all;
  }();
  return numbers;
}

const DeviceNumber* find_device_number(std::string_view name) {
  for (const SettableNumber& settable : kNumbers)
    if (is_of(settable, name)) return &settable.number;
  return nullptr;
}

std::vector<std::string> device_number_names() {
  std::vector<std::string> names;
  for (const DeviceNumber& number : device_numbers()) {
    std::string name(number.name);
    if (name.ends_with('.')) name += name.starts_with("link") ? "nvlink" : "bf16";
    names.push_back(std::move(name));
  }
  return names;
}

Device with_numbers(const Device& device, const GivenNumbers& numbers) {
  if (numbers.empty()) return device;
  device.gpu();  // throws for another device
  if (device.is_slice)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} is a slice: its numbers follow from the GPU's", device.id));
  check_known(numbers);
  const auto [known_id, stated] = split_numbers(device.id);
  GivenNumbers all = stated;
  for (const auto& [name, value] : numbers) {
    check_not_stated(device, stated, name);
    all.emplace_back(name, value);
  }
  Device result = device;
  // A rate that was stated before does not follow from SMs and clock: it is set again.
  std::vector<std::string> texts;
  for (const SettableNumber& settable : kNumbers) {
    for (const auto& [name, value] : all) {
      if (!is_of(settable, name)) continue;
      check_possible(settable, name, value);
      const size_t dot = name.find('.');
      settable.set(result, dot == std::string::npos ? "" : std::string_view(name).substr(dot + 1),
                   value);
      texts.push_back(fmt::format("{}={}", name, value));
    }
  }
  result.id = known_id + ":" + join(texts, ",");
  if (!stated.empty()) {
    result.name.resize(std::min(result.name.size(), result.name.rfind(kWith)));
    for (const std::string& warning : contradictions(device, device.id))
      std::erase(result.warnings, warning);
  }
  result.name += std::string(kWith) + join(texts, ", ");
  result.aliases.clear();
  result.slices.clear();  // their memory and SMs are those of the known GPU
  for (std::string& warning : contradictions(result, result.id))
    result.warnings.push_back(std::move(warning));
  return result;
}

std::pair<std::string, GivenNumbers> split_numbers(const std::string& name_or_path) {
  const size_t colon = name_or_path.rfind(':');
  if (colon == std::string::npos || name_or_path.find('=', colon) == std::string::npos)
    return {name_or_path, {}};
  GivenNumbers numbers;
  for (const std::string& part : split(std::string_view(name_or_path).substr(colon + 1), ',')) {
    const size_t equals = part.find('=');
    const std::string text(
        equals == std::string::npos ? "" : trim(std::string_view(part).substr(equals + 1)));
    std::optional<double> value = parse_number<double>(text);
    if (const std::optional<int64_t> whole = parse_whole(text); !value && whole)
      value = static_cast<double>(*whole);
    if (!value || !std::isfinite(*value))
      throw Error(ErrorKind::kInput,
                  fmt::format("'{}': expected NAME=NUMBER, found '{}'; known names: {}",
                              shown_name(name_or_path), shown_name(part),
                              join(device_number_names(), ", ")));
    numbers.emplace_back(trim(std::string_view(part).substr(0, equals)), *value);
  }
  return {name_or_path.substr(0, colon), std::move(numbers)};
}

}  // namespace tilecast
