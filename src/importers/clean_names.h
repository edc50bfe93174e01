#pragma once

// Names in files are any bytes. They reach terminals, CSV, JSON and SVG, so they are cleaned once,
// where the graph of a file is made.

#include "graph/graph.h"

namespace tilecast {

/// Makes all names of the graph, and texts in it, valid UTF-8 without control characters; names
/// have at most 200 characters. What is left out stands as an escape ("\x1b"), or as "..." at the
/// end.
void clean_names(Graph& graph);

}  // namespace tilecast
