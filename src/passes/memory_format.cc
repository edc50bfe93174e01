#include "ops/op_def.h"
#include "passes/passes.h"

namespace tilecast {

int set_memory_format(Graph& graph, MemoryFormat format) {
  constexpr const char* kAttribute = "channels_last";
  constexpr size_t kImageDims = 4;
  int count = 0;
  for (Node& node : graph.nodes) {
    if (find_attribute_def(op_def(node.op), kAttribute) == nullptr ||
        graph.tensor(node.inputs[0]).shape.size() != kImageDims)
      continue;
    node.set_attribute(kAttribute, int64_t{format == MemoryFormat::kChannelsLast ? 1 : 0});
    ++count;
  }
  return count;
}

}  // namespace tilecast
