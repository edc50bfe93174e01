#pragma once

// Parts of a model: the layers of one pipeline stage.

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// Layers [first, first + count) of a model, and what comes before and after all layers.
struct LayerRange {
  int64_t first = 0;
  int64_t count = 0;
  bool has_start = false;  ///< embeddings
  bool has_end = false;    ///< head
  bool operator==(const LayerRange&) const = default;
};

/// How many layers a pipeline can divide: the repetitions of all segments that carry a tensor from
/// one to the next. 0: the model is not made of layers.
int64_t layer_count(const Graph& modules);

/// The graph of modules of some layers. Nodes between layers belong to the part with the layer
/// before. A tensor that another part computes is an input, see `is_received`; what only depends on
/// shapes (masks, rotary tables) each part computes itself. Weights that two parts use (tied
/// embeddings) are in both.
Graph part_of(const Graph& modules, const LayerRange& layers);

/// How often each segment of the model runs in the part: parts with the same numbers are alike.
std::vector<int64_t> segment_runs(const Graph& modules, const LayerRange& layers);

/// Whether the tensor is an input that another part of the model computes.
bool is_received(const Tensor& tensor);
std::vector<TensorId> received_inputs(const Graph& graph);

/// Weights outside of the layers that both parts of a model have: their ids in `first`.
std::vector<TensorId> shared_weights(const Graph& first, const Graph& second);

}  // namespace tilecast
