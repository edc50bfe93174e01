#pragma once

#include <string>

#include "schema/convert.h"

namespace tilecast {

/// JSON with an indentation of one space, keys in alphabetical order, and a newline at the end.
std::string json_text(const Value& value);

/// A record, or a list of records.
template <typename T>
std::string to_json(const T& result) {
  return json_text(Convert<T>::value(result));
}

}  // namespace tilecast
