// Kernels that stream memory, and those that go over rows.

#include <algorithm>

#include "predict/features.h"
#include "predict/power.h"

namespace tilecast {
namespace {

struct Inputs {
  const Kernel& kernel;
  const Device& device;
};

using F = Feature<Inputs>;

/// Newer NVIDIA devices come nearer to their bandwidth in kernels that go over rows twice; the
/// process node stands for the generation. AMD's kernels are others: one level for all.
float generation(const Inputs& x) {
  return x.device.vendor == "amd" ? 4.0f : log2_of(process_node_nm(x.device));
}

float bytes_per_l2(const Inputs& x) { return log2_bytes_per_l2(x.kernel, x.device); }

// These kernels come in more kinds than were measured: no two features here may be tied to each
// other in the measured ones, or the networks could say anything where the tie is broken.
constexpr auto kStream = std::to_array<F>({
    {"log2_bytes_per_l2", bytes_per_l2},
    {"log2_flops_per_byte",
     [](const Inputs& x) {
       return log2_of((1.0 + static_cast<double>(x.kernel.flops)) /
                      std::max(1.0, static_cast<double>(x.kernel.bytes())));
     }},
});

constexpr auto kRows = std::to_array<F>({
    {"log2_bytes_per_l2", bytes_per_l2},
    {"log2_columns",
     [](const Inputs& x) { return log2_of(std::get<Rows>(x.kernel.shape).columns); }},
    {"log2_process_node", generation},
    {"is_amd", [](const Inputs& x) { return flag(x.device.vendor == "amd"); }},
});

using StreamTable = FeatureTable<kStream>;
using RowsTable = FeatureTable<kRows>;

template <Rows::Function kFunction>
NetDef rows_net(std::string_view name) {
  return {.name = name,
          .covers =
              [](const Kernel& kernel) {
                const Rows* rows = kernel.as<Rows>();
                return rows != nullptr && rows->function == kFunction;
              },
          .features = RowsTable::names(),
          .base_features = RowsTable::kBaseCount,
          .lowest_logit = -5.0f,
          .pair_dtypes = {DType::kFp32, DType::kBf16, DType::kInt8},
          .make = [](const Kernel& kernel, const Device& device, const Conditions&, const Bound&,
                     Tile) { return RowsTable::values(Inputs{kernel, device}); }};
}

}  // namespace

NetDef elementwise_net() {
  return {.name = "elementwise",
          .covers = [](const Kernel& kernel) { return kernel.is<Stream>(); },
          .features = StreamTable::names(),
          .base_features = StreamTable::kBaseCount,
          .lowest_logit = -6.0f,  // 0.25 %: the bound of small kernels is that of L2
          .pair_dtypes = {DType::kFp32, DType::kBf16, DType::kInt8},
          .make = [](const Kernel& kernel, const Device& device, const Conditions&, const Bound&,
                     Tile) { return StreamTable::values(Inputs{kernel, device}); }};
}

NetDef softmax_net() { return rows_net<Rows::Function::kSoftmax>("softmax"); }

NetDef layer_norm_net() { return rows_net<Rows::Function::kNorm>("layer_norm"); }

}  // namespace tilecast
