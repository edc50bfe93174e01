#pragma once

// Which parts of a graph of modules serving software merges.

#include <string>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// Linear layers with the same input that are merged into one product.
struct Merge {
  std::string name;
  Role weight = Role::kNone;  ///< of the product's weight
  std::vector<int32_t> linears;
  bool sliced = true;  ///< its parts are read separately; else a gated activation reads them all
};

struct ModuleFusions {
  std::vector<Merge> merges;
  std::vector<int32_t> producer;  ///< by tensor: the node that computes it; -1: none
  std::vector<int32_t> member;    ///< by node: the merge that the linear layer belongs to; -1: none
  /// By node: the merge whose product comes right before it; -1: none.
  std::vector<int32_t> first;
  std::vector<int32_t> gates;  ///< by node: for gate · up, the node of the gate's activation
  std::vector<bool> absorbed;  ///< by node: part of a kernel that another node stands for
  std::vector<bool> deferred;  ///< by tensor: a sum that the kernel of the next norm computes
  /// By segment: weights that no node of the step reads.
  std::vector<std::vector<TensorId>> unread;
  int32_t output_layer = -1;  ///< the linear layer that computes the logits; -1: none here
};

/// `has_output_layer` as in StepRequest.
ModuleFusions find_fusions(const Graph& modules, bool has_output_layer);

}  // namespace tilecast
