// An ONNX file of any content either gives a graph or an Error that is not a bug.

#include <cstdint>
#include <string>
#include <string_view>

#include "importers/model.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "tilecast/error.h"

/// Inputs that gave a graph (run_corpus.cc counts them).
extern "C" {
int fuzz_accepted = 0;
}

namespace {

void pass(const tilecast::Model& model, const tilecast::GraphRequest& request) {
  tilecast::Graph graph = tilecast::recognize(model.build(request));
  graph = tilecast::decompose(std::move(graph), {});
  tilecast::validate(graph);
  std::vector<tilecast::Kernel> kernels;
  for (const tilecast::Node& node : graph.nodes) {
    if (kernels.size() > 100000) break;
    tilecast::lower_node(graph, node, kernels);
  }
}

/// The symbol of a dimension that the message says has no size; "" if it says something else.
std::string symbol_in(std::string_view message) {
  constexpr std::string_view kStart = "is the symbol '", kEnd = "', which has no size";
  const size_t start = message.find(kStart), end = message.find(kEnd);
  if (start == message.npos || end == message.npos) return "";
  const size_t first = start + kStart.size();
  return end < first ? "" : std::string(message.substr(first, end - first));
}

/// Sizes that are not given are given one after the other, as a user would who reads the messages.
bool gives_graph(const tilecast::Model& model, tilecast::GraphRequest request) {
  constexpr size_t kMostSymbols = 8;
  constexpr int64_t kSize = 4;
  while (true) {
    try {
      pass(model, request);
      return true;
    } catch (const tilecast::Error& error) {
      if (error.kind() == tilecast::ErrorKind::kInternal) throw;
      const std::string symbol = symbol_in(error.what());
      if (symbol.empty() || request.dims.size() == kMostSymbols) return false;
      request.dims.emplace_back(symbol, kSize);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const tilecast::Model model = tilecast::import_model(content, "model.onnx");
    // A file that fixes its batch and length takes only these; others any.
    const bool fixed = gives_graph(model, {.batch = 1, .seq = 1, .skip_unsupported = true});
    const bool open = gives_graph(model, {.batch = 2, .seq = 8, .skip_unsupported = true});
    if (fixed || open) ++fuzz_accepted;
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
