#pragma once

#include <string>

#include "schema/record.h"

namespace tilecast {

/// JSON with an indentation of one space, keys in alphabetical order, and a newline at the end.
std::string json_text(const Value& value);

template <typename T>
std::string to_json(const T& record) {
  return json_text(value_of(record));
}

}  // namespace tilecast
