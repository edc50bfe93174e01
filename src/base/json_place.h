#pragma once

// Where a value stands in the text of JSON. nlohmann's values do not know; it is looked up when a
// message needs it.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tilecast {

/// A step from a value to one inside of it: a key of an object, or a place in a list.
struct JsonStep {
  std::string key;
  size_t index = 0;
  bool is_key = true;
};

/// "3:14", line and column of the value behind the steps. `text` has been parsed before and has the
/// value; else the place of the last one that it has.
std::string json_place(std::string_view text, std::span<const JsonStep> steps);

}  // namespace tilecast
