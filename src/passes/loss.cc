#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

const Node* maker(const Graph& graph, TensorId id) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const TensorId output : node->outputs) {
      if (output == id) return &*node;
    }
  }
  return nullptr;
}

/// Whether a linear layer computes the tensor, with pointwise operators in between (softcapping).
bool is_logits(const Graph& graph, TensorId id) {
  const OpId linear = require_op("linear"), tanh = require_op("tanh");
  const Node* node = maker(graph, id);
  if (node == nullptr || node->op == tanh) return false;  // a pooler, whose output is a feature
  while (node != nullptr && node->op != linear && op_def(node->op).pointwise_flops)
    node = maker(graph, node->inputs[0]);
  return node != nullptr && node->op == linear;
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
    if (form.upcast && graph.tensor(x).dtype != DType::kFp32)
      x = b.op("cast", {x}, "loss.upcast", {{"dtype", DType::kFp32}});
    // cross_entropy states the dtype of log_softmax, so autocast leaves it, but casts for nll_loss.
    TensorId log_probabilities = b.op("log_softmax", {x}, "loss.log_softmax");
    if (form.autocast && graph.tensor(x).dtype != DType::kFp32)
      log_probabilities = b.op("cast", {log_probabilities}, "loss.cast", {{"dtype", DType::kFp32}});
    // Megatron-LM, vocab_parallel_cross_entropy: the largest logit, the target's logit and the sum
    // of exponentials of each row.
    if (form.ranks > 1) {
      for (const char* name : {"loss.max", "loss.target", "loss.sum"}) {
        const TensorId row = b.tensor({.name = name,
                                       .shape = graph.tensor(labels).shape,
                                       .kind = TensorKind::kReference,
                                       .segment = b.current_segment()});
        b.op("all_reduce", {row}, name, {{"ranks", form.ranks}});
      }
    }
    graph.losses.push_back(b.op("nll_loss", {log_probabilities, labels}, "loss.nll_loss"));
  }
  validate_if_debug(graph);
}

}  // namespace tilecast
