#pragma once

// Names in files are any bytes. They reach terminals, CSV, JSON and SVG, so they are cleaned once,
// where the graph of a file is made.

#include <string>

#include "graph/graph.h"

namespace tilecast {

/// Valid UTF-8 without control characters, of at most 200 characters. What is left out stands as an
/// escape ("\x1b"), or as "...#1a2b3c4d" at the end: the number is made of the whole name, since
/// rows of equal names are joined and two long names may begin alike.
std::string clean_name(std::string name);

/// Makes all names of the graph clean, and texts in it without control characters.
void clean_names(Graph& graph);

}  // namespace tilecast
