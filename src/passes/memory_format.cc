#include <algorithm>
#include <iterator>

#include "ops/op_def.h"
#include "passes/passes.h"

namespace tilecast {

int set_memory_format(Graph& graph, MemoryFormat format) {
  static const OpId convolutions[] = {require_op("conv2d"),
                                      require_op("conv2d_input_backward"),
                                      require_op("conv2d_weight_backward"),
                                      require_op("conv"),
                                      require_op("conv_input_backward"),
                                      require_op("conv_weight_backward")};
  constexpr size_t kImageDims = 4;
  int count = 0;
  for (Node& node : graph.nodes) {
    const bool is_convolution = std::find(std::begin(convolutions), std::end(convolutions),
                                          node.op) != std::end(convolutions);
    if (!is_convolution || graph.tensor(node.inputs[0]).shape.size() != kImageDims) continue;
    node.set_attribute("channels_last", int64_t{format == MemoryFormat::kChannelsLast ? 1 : 0});
    ++count;
  }
  return count;
}

}  // namespace tilecast
