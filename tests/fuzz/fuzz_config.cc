// A Hugging Face config of any content either gives a graph or an Error that is not a bug.

#include <cstdint>
#include <string_view>

#include "importers/model.h"
#include "memory/by_purpose.h"
#include "passes/passes.h"
#include "passes/serving.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tilecast::Model model =
        tilecast::import_model({reinterpret_cast<const char*>(data), size}, "config.json");
    tilecast::Graph graph =
        tilecast::decompose(model.build({.batch = 2, .seq = 16}), {.training = true});
    // Thousands of layers or experts are valid, but slow the fuzzer down.
    if (graph.nodes.size() > 2000) return 0;
    for (const tilecast::Segment& segment : graph.segments) {
      if (segment.repeat > 100) return 0;
    }
    if (model.checkpoint.scheme_of) {
      tilecast::Graph stored = tilecast::decompose(
          model.build({.batch = 1, .seq = 8, .dtype = tilecast::DType::kBf16}), {});
      tilecast::quantize_linears(stored, tilecast::scheme_by_name(model.checkpoint.scheme_of));
      tilecast::memory_by_purpose(stored);
    }
    tilecast::add_backward(graph);
    tilecast::fuse_pointwise(graph);
    tilecast::memory_by_purpose(graph);
    if (model.decoder) {
      const tilecast::Graph modules = model.build({.dtype = tilecast::DType::kBf16});
      for (const int64_t past : {0, 40}) {
        for (const int64_t ranks : {1, 3})
          tilecast::memory_by_purpose(
              tilecast::fuse(tilecast::shard(modules, ranks),
                             {.groups = {{2, 3, past}, {1, 1, 7}},
                              .scheme_of = tilecast::scheme_by_name(model.checkpoint.scheme_of),
                              .skew_percent = 101}));
      }
    }
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
