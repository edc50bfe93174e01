#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"

namespace tilecast {

/// The range of a number of a device file, in its unit. Ranges are wide: they include every
/// accelerator sold so far and future ones. They only detect numbers in a wrong unit (GB/s instead
/// of B/s) or wrong by powers of ten.
struct QuantityRange {
  std::string_view key;
  std::string_view unit;
  double min, max;
  double typical;  ///< a typical value, to guess which other unit was meant
  std::string_view source;
};

/// The range of each numeric field. All dtypes share one range, and so do all links.
const std::vector<QuantityRange>& quantity_ranges();

/// "" if `value` is possible, else an explanation with the unit that was probably meant. `key` is
/// one of quantity_ranges().
std::string implausible(std::string_view key, double value);

/// Contradictions between a device's numbers, as sentences; empty if there are none.
std::vector<std::string> contradictions(const Device& device, const std::string& where);

}  // namespace tilecast
