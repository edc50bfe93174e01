#include <algorithm>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "tilecast/error.h"

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

bool is_read(const Graph& graph, TensorId id) {
  const auto reads = [id](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
  };
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), reads);
}

void remove_node(Graph& graph, int32_t at) {
  for (const TensorId id : graph.nodes[static_cast<size_t>(at)].outputs)
    graph.tensor(id).kind = TensorKind::kReference;  // nothing makes or reads it
  graph.nodes.erase(graph.nodes.begin() + at);
  for (Segment& segment : graph.segments) {
    if (segment.first_node > at) {
      --segment.first_node;
    } else if (at < segment.first_node + segment.node_count) {
      --segment.node_count;
    }
  }
}

/// Takes the output layer out of the graph, for a loss that computes it, and with it the casts of
/// autocast, which that loss makes itself.
Node take_output_layer(Graph& graph, TensorId logits, bool autocast) {
  const OpId linear = require_op("linear"), keep = require_op("keep");
  const auto maker = [&](TensorId id) {
    return maker_before(graph, static_cast<int32_t>(graph.nodes.size()), id);
  };
  int32_t at = maker(logits);
  while (graph.nodes[static_cast<size_t>(at)].op == keep) {
    logits = graph.nodes[static_cast<size_t>(at)].inputs[0];
    remove_node(graph, at);
    at = maker(logits);
  }
  Node layer = graph.nodes[static_cast<size_t>(at)];
  if (layer.op != linear || layer.inputs.size() != 2 ||
      attribute<int64_t>(layer, "weight_layout") != 0 || is_read(graph, logits))
    throw Error(ErrorKind::kUnsupported,
                graph.name +
                    ": `cross-entropy` chunked computes an output layer without bias whose logits "
                    "nothing else reads, scales or caps; use another `cross-entropy`");
  remove_node(graph, at);
  for (TensorId& id : layer.inputs) {
    const int32_t cast = maker(id);
    if (!autocast || cast < 0 || graph.nodes[static_cast<size_t>(cast)].op != require_op("cast"))
      continue;
    const TensorId copy = id;
    id = graph.nodes[static_cast<size_t>(cast)].inputs[0];
    if (!is_read(graph, copy)) remove_node(graph, cast);
  }
  return layer;
}

}  // namespace

void add_loss(Graph& graph, const LossForm& form) {
  std::vector<TensorId> logits;
  for (const TensorId id : graph.outputs) {
    if (is_logits(graph, id)) logits.push_back(id);
  }
  if (logits.empty()) return;
  const bool chunked = form.cross_entropy == CrossEntropy::kChunked;
  std::vector<Node> layers;
  std::vector<DType> dtypes;  // of their products
  for (const TensorId id : logits) {
    if (!chunked) break;
    dtypes.push_back(graph.tensor(id).dtype);
    layers.push_back(take_output_layer(graph, id, form.autocast));
  }
  GraphBuilder b(graph);
  b.begin_segment("loss", 1);
  b.set_counts(form.counts);
  for (size_t i = 0; i < logits.size(); ++i) {
    TensorId x = logits[i];
    Shape rows = graph.tensor(x).shape;
    rows.pop_back();
    const TensorId labels = b.input("labels", std::move(rows), DType::kInt64);
    if (chunked) {
      graph.losses.push_back(b.add("linear_cross_entropy",
                                   {layers[i].inputs[0], layers[i].inputs[1], labels},
                                   "loss.linear_cross_entropy", {{"dtype", dtypes[i]}})[0]);
      continue;
    }
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
