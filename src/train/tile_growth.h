#pragma once

#include <string>
#include <vector>

#include "predict/tiles.h"
#include "train/dataset.h"

namespace tilecast {

/// Grows the tree of one vendor's library from the rows whose profiled kernel names a tile (CART,
/// Breiman et al. 1984: Gini impurity, depth at most 12, at least 20 rows a leaf).
/// `use` says which rows count. An empty tree where there are none.
TileTree grow_tile_tree(const TrainingData& data, const std::vector<bool>& use,
                        const std::string& vendor);

}  // namespace tilecast
