#pragma once

#include "graph/graph.h"

namespace tilecast {

/// Leaves out the operators `keep`: a compiled model holds nothing in Python variables.
void forget_variables(Graph& graph);

}  // namespace tilecast
