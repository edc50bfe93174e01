#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "ops/kernel.h"

namespace tilecast {

/// Rows and columns of the output that one block computes.
struct Tile {
  int32_t m = 128;
  int32_t n = 128;
  bool operator==(const Tile&) const = default;
};

/// A decision tree that says which tile a BLAS library picks; grown from profiled kernels. Inner
/// nodes compare one feature with a threshold; leaves name a tile.
struct TileTree {
  struct Node {
    int32_t feature = -1;  ///< -1 for a leaf
    float threshold = 0;   ///< left where feature < threshold
    int32_t left = 0;
    int32_t right = 0;
    Tile tile;
    bool operator==(const Node&) const = default;
  };
  std::string library;  ///< vendor whose BLAS library it describes
  std::vector<Node> nodes;

  bool operator==(const TileTree&) const = default;
};

inline constexpr size_t kTileFeatures = 7;
using TileFeatures = std::array<float, kTileFeatures>;
TileFeatures tile_features(const Kernel& kernel, const Device& device);

Tile choose_tile(const TileTree& tree, const TileFeatures& features);

}  // namespace tilecast
