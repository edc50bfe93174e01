#pragma once

#include <cstdint>

namespace tilecast {

/// Rows and columns of the output that one block computes.
struct Tile {
  int32_t m = 128;
  int32_t n = 128;
  bool operator==(const Tile&) const = default;
};

}  // namespace tilecast
