// Imports Tilecast's own graph notation. Batch and sequence length are fixed by the file.

#include <algorithm>

#include "base/text.h"
#include "importers/clean_names.h"
#include "importers/model.h"
#include "ops/notation.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

bool sniff_notation(std::string_view file_name, std::string_view content) {
  if (file_name.ends_with(".tcg")) return true;
  return trim(content).starts_with("graph ");
}

/// Files from before roles existed said by the label of a linear layer that it is a router: without
/// an adapter beside it (LoRA).
void add_roles_of_labels(Graph& graph) {
  const OpId linear = require_op("linear");
  const auto has_role = [](const auto& x) { return x.role != Role::kNone; };
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), has_role) ||
      std::any_of(graph.tensors.begin(), graph.tensors.end(), has_role))
    return;
  for (const Node& node : graph.nodes) {
    if (node.op != linear) continue;
    Tensor& weight = graph.tensor(node.inputs[1]);
    if (weight.kind == TensorKind::kWeight && router_role(node.name + ".weight") == Role::kRouter)
      weight.role = Role::kRouter;
  }
}

Model import_graph(const ModelText& text) {
  Graph graph = parse_graph(text.content, text.where);
  clean_names(graph);
  add_roles_of_labels(graph);
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
