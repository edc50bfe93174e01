// Kernels that stream memory, and those that go over rows.

#include <algorithm>

#include "predict/features.h"

namespace tilecast {
namespace {

using F = Feature<Kernel>;

constexpr auto kStream = std::to_array<F>({
    {"log2_bytes", [](const Kernel& x) { return log2_of(x.bytes()); }},
    {"log2_flops_per_byte",
     [](const Kernel& x) {
       return log2_of((1.0 + static_cast<double>(x.flops)) /
                      static_cast<double>(std::max<int64_t>(1, x.bytes())));
     }},
    {"read_share",
     [](const Kernel& x) {
       return static_cast<float>(static_cast<double>(x.read_bytes) /
                                 static_cast<double>(std::max<int64_t>(1, x.bytes())));
     }},
});

constexpr auto kRows = std::to_array<F>({
    {"log2_bytes", [](const Kernel& x) { return log2_of(x.bytes()); }},
    {"log2_columns", [](const Kernel& x) { return log2_of(std::get<Rows>(x.shape).columns); }},
    {"log2_rows", [](const Kernel& x) { return log2_of(std::get<Rows>(x.shape).rows); }},
    {"align_columns", [](const Kernel& x) { return alignment(std::get<Rows>(x.shape).columns); }},
});

using StreamTable = FeatureTable<kStream>;
using RowsTable = FeatureTable<kRows>;

template <Rows::Function kFunction>
KernelKindDef rows_kind(std::string_view name) {
  return {
      .name = name,
      .covers =
          [](const Kernel& kernel) {
            const Rows* rows = kernel.as<Rows>();
            return rows != nullptr && rows->function == kFunction && !block_rows_of(kernel);
          },
      .law = rows_law,
      .cold = true,
      .features = RowsTable::names(),
      .make = [](const Kernel& kernel, const Conditions&) { return RowsTable::values(kernel); }};
}

}  // namespace

KernelKindDef elementwise_kind() {
  return {
      .name = "elementwise",
      .covers = [](const Kernel& kernel) { return kernel.is<Stream>() && !block_rows_of(kernel); },
      .law = stream_law,
      .cold = true,
      .features = StreamTable::names(),
      .make = [](const Kernel& kernel, const Conditions&) { return StreamTable::values(kernel); }};
}

KernelKindDef softmax_kind() { return rows_kind<Rows::Function::kSoftmax>("softmax"); }

KernelKindDef layer_norm_kind() { return rows_kind<Rows::Function::kNorm>("layer_norm"); }

}  // namespace tilecast
