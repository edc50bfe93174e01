// An ONNX file of any content either gives a graph or an Error that is not a bug.

#include <cstdint>
#include <string_view>

#include "importers/model.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const tilecast::Model model = tilecast::import_model(content, "model.onnx");
    const tilecast::GraphRequest request{.batch = 2, .seq = 8, .skip_unsupported = true};
    tilecast::Graph graph = tilecast::recognize(model.build(request));
    graph = tilecast::decompose(std::move(graph), {});
    tilecast::validate(graph);
    std::vector<tilecast::Kernel> kernels;
    for (const tilecast::Node& node : graph.nodes) {
      if (kernels.size() > 100000) break;
      tilecast::lower_node(graph, node, kernels);
    }
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
