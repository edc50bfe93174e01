#include "many/distinct_rows.h"

#include <unordered_map>

namespace tilecast {

// Column by column: the kind of a row with one column more follows from its kind before and its
// code in that column.
DistinctRows find_distinct(std::span<const OptionColumn> columns, size_t rows) {
  DistinctRows result;
  result.kind.assign(rows, 0);
  if (rows > 0) result.first = {0};
  for (const OptionColumn& column : columns) {
    if (column.words.empty()) continue;  // the default in all rows
    std::unordered_map<uint64_t, uint32_t> kinds;
    result.first.clear();
    for (size_t row = 0; row < rows; ++row) {
      const auto code = static_cast<uint32_t>(column.codes[row]);
      const uint64_t key = uint64_t{result.kind[row]} << 32 | code;
      const auto [it, fresh] = kinds.emplace(key, static_cast<uint32_t>(result.first.size()));
      if (fresh) result.first.push_back(row);
      result.kind[row] = it->second;
    }
  }
  return result;
}

}  // namespace tilecast
