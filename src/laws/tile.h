#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tilecast {

/// Rows and columns of the output that one block computes.
struct Tile {
  int32_t m = 128;
  int32_t n = 128;
  bool operator==(const Tile&) const = default;

  /// As numbers of a list of constants, and back.
  static Tile of(const double* numbers) {
    return {static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1])};
  }
  std::array<double, 2> numbers() const { return {static_cast<double>(m), static_cast<double>(n)}; }
};

/// Images, rows and columns that one block covers.
struct BlockShape {
  double images, rows, columns;
  bool operator==(const BlockShape&) const = default;

  static BlockShape of(const double* numbers) { return {numbers[0], numbers[1], numbers[2]}; }
  std::array<double, 3> numbers() const { return {images, rows, columns}; }
};

}  // namespace tilecast
