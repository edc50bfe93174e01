#pragma once

#include <span>
#include <string>
#include <vector>

#include "schema/convert.h"

namespace tilecast {

/// JSON with an indentation of one space, keys in alphabetical order, and a newline at the end.
std::string json_text(const Value& value);

/// Of a record the fields of these names alone. Throws Error{kInput} for a name that it lacks.
std::string json_text(const RecordRef& record, std::span<const std::string> names);

/// On one line, without its end. No names: all fields.
std::string json_line(const RecordRef& record, std::span<const std::string> names);

/// A line for each record.
template <typename T>
std::string to_json_lines(const std::vector<T>& rows, std::span<const std::string> names) {
  std::string text;
  for (const T& row : rows) text.append(json_line({&record_of<T>(), &row}, names)).append(1, '\n');
  return text;
}

/// A record, or a list of records.
template <typename T>
std::string to_json(const T& result) {
  return json_text(Convert<T>::value(result));
}

template <typename T>
std::string to_json(const T& result, std::span<const std::string> names) {
  return json_text(RecordRef{&record_of<T>(), &result}, names);
}

}  // namespace tilecast
