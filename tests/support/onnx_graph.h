#pragma once

// Graphs from ONNX files made in memory.

#include <string>
#include <vector>

#include "importers/model.h"
#include "onnx_writer.h"
#include "ops/op_def.h"
#include "ops/validate.h"

namespace tilecast::onnx_writer {

inline Graph build(const Writer& writer, const GraphRequest& request = {}) {
  Graph graph = import_model(writer.file(), "model.onnx").build(request);
  validate(graph);
  return graph;
}

using Names = std::vector<std::string>;

/// The operators of a graph, in order.
inline Names ops_of(const Graph& graph) {
  Names names;
  for (const Node& node : graph.nodes) names.emplace_back(op_def(node.op).name);
  return names;
}

}  // namespace tilecast::onnx_writer
