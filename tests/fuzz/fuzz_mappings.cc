// A file of mappings of any content either gives entries that each run on a layer, or an Error that
// is not a bug.

#include <array>
#include <cstdint>
#include <string_view>

#include "accelerator/mapper.h"
#include "accelerator/mapping_file.h"
#include "accelerator/tiling.h"
#include "tilecast/error.h"

namespace {

using namespace tilecast::accelerator;

constexpr EvaluationLimits kLimits{.most_evaluated = 500, .most_rerun = 5000};

/// Runs an entry, or finds what is wrong with it: entries that follow are still run.
void run_entry(const Design& design, const Layer& given, const MappingEntry& entry) {
  try {
    const Layer layer = as_run(given, design.flow);
    run_mapping(design, given, parse_mapping(entry.mapping, layer, entry.where), kLimits,
                entry.where);
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
}

void run_text(std::string_view text) {
  static const std::array<Design, 2> designs = {open_accelerator("gemmini"),
                                                open_accelerator("plasticine")};
  static const std::array<Layer, 3> layers = {
      Layer{.sizes = {2, 24, 40, 9, 7, 3, 3}, .stride = 2},
      Layer{.kind = LayerKind::kPooling, .sizes = {1, 32, 1, 8, 8, 2, 2}, .stride = 2},
      Layer{.kind = LayerKind::kElementwise, .sizes = {1, 64, 1, 512, 1, 1, 1}, .inputs = 2}};
  const std::vector<MappingEntry> entries = parse_mapping_file(text, "mappings.json");
  for (const Design& design : designs)
    for (const Layer& layer : layers) {
      if (!design.flow.runs(layer.kind)) continue;
      if (const MappingEntry* entry = entry_of(entries, "conv", layer))
        run_entry(design, layer, *entry);
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
