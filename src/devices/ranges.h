#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"

namespace tilecast {

/// What a number of a device file can be, in its unit. The limits are wide: they hold every
/// accelerator that was ever sold and what may come, and only tell a number in another unit (GB/s
/// for B/s) or a slip of a power of ten from one that is meant.
struct QuantityRange {
  std::string_view key;
  std::string_view unit;
  double min, max;
  double typical;  ///< a usual value; decides which other unit was probably meant
  std::string_view source;
};

/// Of each numeric field; those of all dtypes and of all links share one.
const std::vector<QuantityRange>& quantity_ranges();

/// "" where `value` is possible, else what is wrong and which unit was probably meant.
/// `key` is one of quantity_ranges().
std::string implausible(std::string_view key, double value);

/// What in a device's numbers contradicts itself, for people; empty where nothing does.
std::vector<std::string> contradictions(const Device& device, const std::string& where);

}  // namespace tilecast
