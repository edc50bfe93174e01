#pragma once

// What serving software joins of a graph of modules.

#include <string>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// Linear layers of one input that are one product.
struct Merge {
  std::string name;
  std::vector<int32_t> linears;
  bool sliced = true;  ///< its parts are read one by one; else by one gated activation
};

struct ServingPlan {
  std::vector<Merge> merges;
  std::vector<int32_t> producer;  ///< by tensor: the node that makes it; -1: given
  std::vector<int32_t> member;    ///< by node: the merge that a linear layer belongs to; -1: none
  std::vector<int32_t> first;     ///< by node: the merge that is written before it; -1: none
  std::vector<int32_t> gates;     ///< by node: for products of a gate, the gate's activation
  std::vector<bool> absorbed;     ///< by node: part of a kernel that is written elsewhere
  std::vector<bool> deferred;     ///< by tensor: a sum that the next norm adds up
  /// By segment: weights that no node reads.
  std::vector<std::vector<TensorId>> unread;
  int32_t output_layer = -1;  ///< the linear layer that makes the logits
};

ServingPlan plan_serving(const Graph& modules);

}  // namespace tilecast
