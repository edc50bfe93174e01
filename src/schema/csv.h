#pragma once

#include <span>
#include <string>
#include <vector>

#include "schema/convert.h"

namespace tilecast {

/// CSV of a list of records: a header, and a line for each. Values by name have a column for each
/// name that any of them has, numbers of a list are joined by "x", texts by a space, fields of a
/// part have the part's name in front. Fields without a value are empty. Lists of records have no
/// column.
std::string csv_text(const RecordDef& def, const ListRef& rows);

/// Some columns of it, or all if there are no names, with or without the header.
std::string csv_lines(const RecordDef& def, const ListRef& rows, std::span<const std::string> names,
                      bool with_header);

template <typename T>
std::string to_csv_lines(const std::vector<T>& rows, std::span<const std::string> names,
                         bool with_header) {
  return csv_lines(record_of<T>(), std::get<ListRef>(Convert<std::vector<T>>::value(rows).data),
                   names, with_header);
}

template <typename T>
std::string to_csv(const std::vector<T>& rows) {
  return csv_text(record_of<T>(), std::get<ListRef>(Convert<std::vector<T>>::value(rows).data));
}

}  // namespace tilecast
