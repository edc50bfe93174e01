#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/forest.h"

namespace tilecast {

struct ForestTask {
  size_t width = 0;
  std::vector<float> inputs;  ///< width floats a row
  std::vector<float> targets;
  std::vector<float> weights;
  int trees = 1;
  int depth = Forest::kDepth;  ///< at most that
  double leaf_weight = 5;      ///< least weight of the rows of a leaf
  uint64_t seed = 1;
};

/// Boosted trees with squared loss (XGBoost: Chen, Guestrin 2016), one thread, seeded: the same
/// task gives the same bits. Throws Error{kInternal} where the library fails.
Forest train_forest(const ForestTask& task);

/// How all forests are trained, as text.
std::string forest_settings();

/// Loads XGBoost. Throws Error{kUnsupported} where this machine does not have it.
void require_xgboost();

}  // namespace tilecast
