// Imports Tilecast's own graph notation. Batch and sequence length are fixed by the file.

#include <algorithm>

#include "base/text.h"
#include "importers/model.h"
#include "ops/notation.h"

namespace tilecast {
namespace {

bool sniff_notation(std::string_view file_name, std::string_view content) {
  if (file_name.ends_with(".tcg")) return true;
  return trim(content).starts_with("graph ");
}

Model import_graph(const ModelText& text) {
  const Graph graph = parse_graph(text.content, text.where);
  Model model;
  // The dtype of the result is shown as the model's dtype.
  model.fixed_dtype = graph.outputs.empty() ? DType::kFp32 : graph.tensor(graph.outputs[0]).dtype;
  model.has_backward = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                   [](const Node& node) { return node.phase == Phase::kBackward; });
  model.name = graph.name;
  model.family = "graph";
  model.build = [graph](const GraphRequest&) { return graph; };
  return model;
}

}  // namespace

ImporterDef graph_importer() {
  return {.name = "graph",
          .doc = "Tilecast's graph notation (.tcg)",
          .sniff = sniff_notation,
          .import = import_graph};
}

}  // namespace tilecast
