// Kernels of serving software with a block for each row: RMS norms (with the sum of a residual
// before them), gated activations and rotary embedding.

#include "predict/features.h"

namespace tilecast {
namespace {

using F = Feature<Kernel>;

// Not the bytes: a norm that adds a residual moves twice as many, which the law knows.
constexpr auto kFeatures = std::to_array<F>({
    {"log2_rows", [](const Kernel& x) { return log2_of(block_rows_of(x)->rows); }},
    {"log2_columns", [](const Kernel& x) { return log2_of(block_rows_of(x)->columns); }},
    {"norm",
     [](const Kernel& x) { return flag(block_rows_of(x)->kind == BlockRows::Kind::kNorm); }},
    {"rotary",
     [](const Kernel& x) { return flag(block_rows_of(x)->kind == BlockRows::Kind::kRotary); }},
});

using Table = FeatureTable<kFeatures>;

}  // namespace

KernelKindDef block_rows_kind() {
  return {.name = "block_rows",
          .covers = [](const Kernel& kernel) { return block_rows_of(kernel).has_value(); },
          .law = block_rows_law,
          .features = Table::names(),
          .learning = {.from_layers = true, .apart = true},
          .make = [](const Kernel& kernel, const Conditions&) { return Table::values(kernel); }};
}

}  // namespace tilecast
