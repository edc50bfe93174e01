// A GGUF file of any content either gives a graph or an Error that is not a bug.

#include <cstdint>
#include <string>
#include <string_view>

#include "importers/gguf/splits.h"
#include "importers/model.h"
#include "memory/by_purpose.h"
#include "passes/passes.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The magic number is given, so that no input is lost on it.
  std::string content = "GGUF";
  content.append(reinterpret_cast<const char*>(data), size);
  // The second half is another part, if the first says that there is one.
  const std::string half = "GGUF" + content.substr(content.size() / 2);
  try {
    const tilecast::ModelText first{content, "model-00001-of-00002.gguf"};
    if (tilecast::other_gguf_splits(first).size() == 1)
      tilecast::import_gguf_splits(first, {{half, "model-00002-of-00002.gguf"}});
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  try {
    const tilecast::Model model = tilecast::import_model(content, "model.gguf");
    tilecast::Graph graph = model.build({.batch = 1, .seq = 8, .dtype = tilecast::DType::kFp16});
    if (graph.nodes.size() > 2000) return 0;
    for (const tilecast::Segment& segment : graph.segments) {
      if (segment.repeat > 100) return 0;
    }
    graph = tilecast::decompose(std::move(graph), {});
    if (model.checkpoint.scheme_of)
      tilecast::quantize_linears(graph, tilecast::scheme_by_name(model.checkpoint.scheme_of));
    tilecast::set_weights_bytes(graph, *model.checkpoint.weights_bytes);
    tilecast::memory_by_purpose(graph);
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
