#pragma once

#include <string>
#include <vector>

#include "api/precision.h"
#include "graph/graph.h"
#include "tilecast/request.h"

namespace tilecast {

/// What a training of adapters assumes of a model's experts; empty if it has none.
std::vector<std::string> adapter_remarks(const Graph& graph, const Request& request,
                                         const Precision& precision);

}  // namespace tilecast
