#include <algorithm>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

/// The number of the node before number `end` that makes the tensor; -1: there is none.
int32_t maker_before(const Graph& graph, int32_t end, TensorId id) {
  while (--end >= 0) {
    const std::vector<TensorId>& outputs = graph.nodes[static_cast<size_t>(end)].outputs;
    if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return end;
  }
  return -1;
}

/// Whether a linear layer computes the tensor, with pointwise operators in between (softcapping).
/// Nodes are sorted, so each is looked at once.
bool is_logits(const Graph& graph, TensorId id) {
  const OpId linear = require_op("linear"), tanh = require_op("tanh"), keep = require_op("keep");
  int32_t at = maker_before(graph, static_cast<int32_t>(graph.nodes.size()), id);
  // A pooler ends in tanh; its output is a feature.
  if (at >= 0 && graph.nodes[static_cast<size_t>(at)].op == tanh) return false;
  while (at >= 0) {
    const Node& node = graph.nodes[static_cast<size_t>(at)];
    if (node.op == linear || (node.op != keep && !op_def(node.op).pointwise_flops))
      return node.op == linear;
    at = maker_before(graph, at, node.inputs[0]);
  }
  return false;
}

/// Megatron-LM, vocab_parallel_cross_entropy: ranks that divide the vocabulary exchange the largest
/// logit, the target's logit and the sum of exponentials of each row.
void reduce_rows(GraphBuilder& b, TensorId labels, int64_t ranks) {
  if (ranks == 1) return;
  for (const char* name : {"loss.max", "loss.target", "loss.sum"}) {
    const TensorId row = b.tensor({.name = name,
                                   .shape = b.graph().tensor(labels).shape,
                                   .kind = TensorKind::kReference,
                                   .segment = b.current_segment()});
    b.op("all_reduce", {row}, name, {{"ranks", ranks}});
  }
}

}  // namespace

void add_loss(Graph& graph, const LossForm& form) {
  std::vector<TensorId> logits;
  for (const TensorId id : graph.outputs) {
    if (is_logits(graph, id)) logits.push_back(id);
  }
  if (logits.empty()) return;
  GraphBuilder b(graph);
  b.begin_segment("loss", 1);
  b.set_counts(form.counts);
  for (TensorId x : logits) {
    Shape rows = graph.tensor(x).shape;
    rows.pop_back();
    const TensorId labels = b.input("labels", std::move(rows), DType::kInt64);
    if (form.cross_entropy != CrossEntropy::kLogSoftmax) {
      reduce_rows(b, labels, form.ranks);
      const int64_t compiled = form.cross_entropy == CrossEntropy::kCompiled ? 1 : 0;
      graph.losses.push_back(
          b.add("cross_entropy", {x, labels}, "loss.cross_entropy", {{"compiled", compiled}})[1]);
      continue;
    }
    if (form.upcast && graph.tensor(x).dtype != DType::kFp32)
      x = b.op("cast", {x}, "loss.upcast", {{"dtype", DType::kFp32}});
    // cross_entropy states the dtype of log_softmax, so autocast leaves it, but casts for nll_loss.
    TensorId log_probabilities = b.op("log_softmax", {x}, "loss.log_softmax");
    if (form.autocast && graph.tensor(x).dtype != DType::kFp32)
      log_probabilities = b.op("cast", {log_probabilities}, "loss.cast", {{"dtype", DType::kFp32}});
    reduce_rows(b, labels, form.ranks);
    graph.losses.push_back(b.op("nll_loss", {log_probabilities, labels}, "loss.nll_loss"));
  }
  // The model returns the loss, and the logits are freed (Megatron-LM's GPTModel).
  if (form.cross_entropy != CrossEntropy::kLogSoftmax) graph.outputs = graph.losses;
  validate_if_debug(graph);
}

}  // namespace tilecast
