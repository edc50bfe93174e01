#include <fmt/format.h>

#include "ops/op_def.h"
#include "passes/passes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A tower's images are no part of the rows.
bool is_vision(const Graph& graph, int32_t segment) {
  return segment >= 0 && graph.segments[static_cast<size_t>(segment)].role == Role::kVision;
}

}  // namespace

void pack_sequences(Graph& graph, int64_t length) {
  const OpId attention = require_op("attention");
  bool found = false;
  for (Node& node : graph.nodes) {
    if (node.op != attention || is_vision(graph, graph.tensor(node.outputs[0]).segment)) continue;
    const int64_t queries = graph.tensor(node.inputs[0]).shape[1];
    if (graph.tensor(node.inputs[1]).shape[1] != queries)
      throw Error(ErrorKind::kUnsupported,
                  graph.name +
                      ": `packed-sequence-length`: a decoder that reads an encoder's "
                      "tokens is not modelled; leave it out");
    if (queries % length != 0)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: `packed-sequence-length` {} does not divide the row of {} "
                              "tokens; use one that does, or another `seq`",
                              graph.name, length, queries));
    found = true;
    node.set_attribute("sequences", queries / length);
  }
  if (!found)
    throw Error(ErrorKind::kUnsupported,
                graph.name +
                    ": `packed-sequence-length` needs fused attention, whose kernels take "
                    "sequences one after the other; use `attention` flash");
}

}  // namespace tilecast
