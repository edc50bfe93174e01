#pragma once

#include "graph/graph.h"

namespace tilecast {

/// Gives `to`, which Rewriter made of `from`, the splits of the weights of `from`. Weights that the
/// rule has added get none.
void copy_splits(const Graph& from, Graph& to);

}  // namespace tilecast
