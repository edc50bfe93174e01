#pragma once

#include "graph/graph.h"

namespace tilecast {

/// Checks the invariants of a graph: ids are in range; each tensor is computed once, before it is
/// read; segments cover all nodes in order; carried tensors agree in shape and dtype; memory has an
/// owner; roles fit what has them; inputs, attributes and output shapes of each node agree with the
/// operator table. Throws
/// Error{kInternal} that names the graph and the node, segment or tensor.
void validate(const Graph& graph);

/// Whether importers and passes call `validate` on their results: in builds without NDEBUG or with
/// the CMake option TILECAST_VALIDATE.
extern const bool kValidatesGraphs;

/// Calls `validate` if kValidatesGraphs is true.
inline void validate_if_debug(const Graph& graph) {
  if (kValidatesGraphs) validate(graph);
}

}  // namespace tilecast
