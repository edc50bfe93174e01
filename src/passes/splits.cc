#include "passes/splits.h"

#include <vector>

namespace tilecast {

void copy_splits(const Graph& from, Graph& to) {
  // The rewriter first copies the tensors that no node computes, in their order.
  const std::vector<bool> made = made_tensors(from);
  std::vector<TensorId> now(made.size(), -1);
  TensorId next = 0;
  for (size_t id = 0; id < made.size(); ++id) {
    if (!made[id]) now[id] = next++;
  }
  to.splits = from.splits;
  for (WeightSplit& split : to.splits) split.weight = now[static_cast<size_t>(split.weight)];
}

}  // namespace tilecast
