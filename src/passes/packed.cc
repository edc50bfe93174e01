#include <algorithm>

#include "base/checked.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "tilecast/error.h"

namespace tilecast {

void pack_sequences(Graph& graph, int64_t length) {
  const OpId attention = require_op("attention");
  bool found = false;
  for (Node& node : graph.nodes) {
    if (node.op != attention) continue;
    const int64_t queries = graph.tensor(node.inputs[0]).shape[1];
    if (graph.tensor(node.inputs[1]).shape[1] != queries)
      throw Error(ErrorKind::kUnsupported,
                  graph.name +
                      ": `packed-sequence-length`: a decoder that reads an encoder's "
                      "tokens is not modelled; leave it out");
    found = true;
    node.set_attribute("sequences", std::max<int64_t>(1, ceil_divide(queries, length)));
  }
  if (!found)
    throw Error(ErrorKind::kUnsupported,
                graph.name +
                    ": `packed-sequence-length` needs fused attention, whose kernels take "
                    "sequences one after the other; use `attention` flash");
}

}  // namespace tilecast
