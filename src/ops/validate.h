#pragma once

#include "graph/graph.h"

namespace tilecast {

/// Checks all that a graph promises: ids are in range, tensors are made once and before they are
/// read, segments cover all nodes in order, carried tensors agree in shape and dtype, memory has an
/// owner, and nodes keep to the operator table (inputs, attributes, shapes of what they make).
/// Throws Error{kInternal} that names the graph and the node, segment or tensor.
void validate(const Graph& graph);

/// Whether importers and passes call `validate` on what they make: in builds without NDEBUG or with
/// the CMake option TILECAST_VALIDATE.
extern const bool kValidatesGraphs;

/// `validate` where kValidatesGraphs holds; else nothing.
inline void validate_if_debug(const Graph& graph) {
  if (kValidatesGraphs) validate(graph);
}

}  // namespace tilecast
