#include "passes/vocabulary.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "ops/op_def.h"
#include "passes/output_layer.h"
#include "passes/rewriter.h"
#include "passes/splits.h"

namespace tilecast {
namespace {

/// Divided weights whose rows are tokens: tables of embeddings, what linear layers multiply and add
/// that compute outputs of the model, and what is added to their outputs (BART's bias, a row).
std::set<TensorId> token_weights(const Graph& graph) {
  static const OpId embedding = require_op("embedding"), linear = require_op("linear"),
                    add = require_op("add");
  std::set<TensorId> read, added, tokens;
  for (const Node& node : graph.nodes) {
    const bool output = is_output_layer(graph, node);
    if (node.op == embedding) read.insert(node.inputs[0]);
    if (output && node.op == linear) read.insert(node.inputs.begin() + 1, node.inputs.end());
    if (output && node.op == add) added.insert(node.inputs.begin(), node.inputs.end());
  }
  for (const WeightSplit& split : graph.splits) {
    // Tables of position biases are divided by heads, their columns.
    const bool rows = split.dim == 0 && read.contains(split.weight);
    if (split.unit == 1 && split.parts[1] == 0 && (rows || added.contains(split.weight)))
      tokens.insert(split.weight);
  }
  return tokens;
}

}  // namespace

std::optional<PaddedVocabulary> pad_vocabulary(Graph& modules, int64_t multiple) {
  const std::set<TensorId> weights = token_weights(modules);
  std::optional<PaddedVocabulary> padded;
  for (WeightSplit& split : modules.splits) {
    if (split.parts[0] % multiple == 0 || !weights.contains(split.weight)) continue;
    padded = {split.parts[0], checked_multiply(ceil_divide(split.parts[0], multiple), multiple)};
    split.parts[0] = padded->padded;
    modules.tensor(split.weight).shape[split.dim] = padded->padded;
  }
  if (!padded) return std::nullopt;
  Graph result =
      Rewriter(modules, [](GraphBuilder& b, const Node& node, std::vector<TensorId> inputs) {
        return b.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
      }).run();
  copy_splits(modules, result);
  modules = std::move(result);
  validate_if_debug(modules);
  return padded;
}

}  // namespace tilecast
