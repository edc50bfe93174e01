// A description of an accelerator of any content either gives a machine that runs a small layer, or
// an Error that is not a bug.

#include <cstdint>
#include <string_view>

#include "accelerator/mapper.h"
#include "accelerator/registry.h"
#include "tilecast/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilecast::accelerator;
  try {
    const Design design =
        parse_accelerator({reinterpret_cast<const char*>(data), size}, "accelerator.json");
    const Layer layer{.sizes = {1, 8, 8, 4, 4, 1, 1}};
    map_layer(design, layer, {.evaluated = 1, .limits = {.most_evaluated = 500}});
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
