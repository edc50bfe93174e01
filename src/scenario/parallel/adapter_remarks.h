#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "scenario/precision.h"
#include "tilecast/request.h"

namespace tilecast {

/// Assumptions of a training of adapters about a model's experts; empty if it has none.
std::vector<std::string> adapter_remarks(const Graph& graph, const Request& request,
                                         const Precision& precision);

}  // namespace tilecast
