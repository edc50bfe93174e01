#pragma once

#include <string>

#include "schema/convert.h"

namespace tilecast {

/// CSV of a list of records: a header, and a line for each. Values by name have a column for each
/// name that any of them has, numbers of a list are joined by "x", texts by a space, fields of a
/// part have the part's name in front. Fields without a value are empty. Lists of records have no
/// column.
std::string csv_text(const RecordDef& def, const ListRef& rows);

template <typename T>
std::string to_csv(const std::vector<T>& rows) {
  return csv_text(record_of<T>(), std::get<ListRef>(Convert<std::vector<T>>::value(rows).data));
}

}  // namespace tilecast
