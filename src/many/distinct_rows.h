#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tilecast/search.h"

namespace tilecast {

/// Which rows of a table are alike.
struct DistinctRows {
  std::vector<size_t> first;   ///< the first row of each kind, in order
  std::vector<uint32_t> kind;  ///< for each row the index of its kind
};

DistinctRows find_distinct(std::span<const OptionColumn> columns, size_t rows);

}  // namespace tilecast
