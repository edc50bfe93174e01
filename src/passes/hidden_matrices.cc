#include "ops/op_def.h"
#include "passes/output_layer.h"
#include "passes/passes.h"

namespace tilecast {

/// What the table of operators calls weights that can be quantized: those of linear layers and of
/// experts. Embeddings are looked up, convolutions and norms have no such weights.
void mark_hidden_matrices(Graph& graph) {
  for (const Node& node : graph.nodes) {
    const auto& weights = op_def(node.op).quantization;
    if (!weights || node.phase != Phase::kForward || is_output_layer(graph, node)) continue;
    for (const size_t input : weights->weights) {
      if (input >= node.inputs.size()) continue;
      Tensor& weight = graph.tensor(graph.tensor(node.inputs[input]).storage);
      weight.hidden_matrix = weight.kind == TensorKind::kWeight;
    }
  }
}

}  // namespace tilecast
