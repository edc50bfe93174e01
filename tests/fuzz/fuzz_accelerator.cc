// A description of an accelerator of any content either gives a machine that runs small layers, or
// an Error that is not a bug. So does a text that begins as a mapping does, on a bundled one.

#include <cstdint>
#include <string_view>

#include "accelerator/mapper.h"
#include "accelerator/registry.h"
#include "tilecast/error.h"

namespace {

using namespace tilecast::accelerator;

constexpr EvaluationLimits kLimits{.most_evaluated = 500, .most_rerun = 5000};

void run_text(std::string_view text) {
  if (text.starts_with("order=") || text.starts_with("tile=")) {
    static const Design gemmini = open_accelerator("gemmini");
    const Layer layer{.sizes = {2, 24, 40, 9, 7, 3, 3}, .stride = 2};
    run_mapping(gemmini, layer, parse_mapping(text, layer, "mapping"), kLimits);
    return;
  }
  const Design design = parse_accelerator(text, "accelerator.json");
  for (const LayerKind kind :
       {LayerKind::kProduct, LayerKind::kDepthwise, LayerKind::kPooling, LayerKind::kElementwise}) {
    if (!design.flow.runs(kind)) continue;
    Layer layer{.kind = kind, .sizes = {1, 8, 8, 4, 4, 1, 1}};
    if (kind != LayerKind::kProduct) layer.sizes[2] = 1;
    if (kind == LayerKind::kPooling) layer.sizes[5] = layer.sizes[6] = 2;
    map_layer(design, layer, {.evaluated = 1, .limits = kLimits});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    run_text({reinterpret_cast<const char*>(data), size});
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
