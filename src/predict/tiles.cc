#include "predict/tiles.h"

#include <cmath>

namespace tilecast {

TileFeatures tile_features(const Kernel& kernel, const Device& device) {
  const auto log2 = [](int64_t x) { return std::log2(static_cast<float>(x > 0 ? x : 1)); };
  const Gemm gemm = gemm_of(kernel);
  const float m = log2(gemm.m);
  const float n = log2(gemm.n);
  const float batch = log2(gemm.batch);
  // Outputs per SM, in tiles of 128 × 128: whether large tiles can fill the device.
  const float fill = m + n + batch - 14.0f - log2(device.gpu().sm_count);
  return {m,
          n,
          log2(gemm.k),
          batch,
          fill,
          gemm.batched ? 0.0f : 1.0f,
          log2(device.gpu().lanes_per_sm * 1024) - log2(device.gpu().on_chip_bytes_per_sm)};
}

Tile choose_tile(const TileTree& tree, const TileFeatures& features) {
  if (tree.nodes.empty()) return {};
  size_t i = 0;
  while (tree.nodes[i].feature >= 0) {
    const TileTree::Node& node = tree.nodes[i];
    i = static_cast<size_t>(
        features[static_cast<size_t>(node.feature)] < node.threshold ? node.left : node.right);
  }
  return tree.nodes[i].tile;
}

}  // namespace tilecast
