// A graph of any content either passes through all passes or gives an Error that is not a bug.

#include <cstdint>
#include <string_view>

#include "memory/by_purpose.h"
#include "ops/builder.h"
#include "ops/notation.h"
#include "passes/passes.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tilecast::Graph graph =
        tilecast::parse_graph({reinterpret_cast<const char*>(data), size}, "g.tcg");
    tilecast::parse_graph(tilecast::format_graph(graph), "again.tcg");
    int64_t repeats = 0;
    for (const tilecast::Segment& segment : graph.segments) repeats += segment.repeat;
    if (repeats > 200) return 0;  // valid, but slows the fuzzer down
    tilecast::add_backward(graph);
    tilecast::add_optimizer(graph, {.optimizer = tilecast::Optimizer::kAdamW});
    tilecast::fuse_pointwise(graph);
    std::vector<tilecast::Kernel> kernels;
    for (const tilecast::Node& node : graph.nodes) tilecast::lower_node(graph, node, kernels);
    tilecast::memory_by_purpose(graph);
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
