// Kernels that stream memory, and those that go over rows.

#include <algorithm>

#include "predict/features.h"

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
  constexpr double kUnknownNode = 5;  // of current data-center GPUs
  return x.device.vendor == "amd" ? 4.0f
                                  : log2_of(x.device.gpu().process_nm.value_or(kUnknownNode));
}

float bytes_per_l2(const Inputs& x) {
  return log2_of(static_cast<double>(x.kernel.bytes()) /
                 static_cast<double>(x.device.gpu().l2_bytes));
}

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

constexpr std::array<F, 0> kNone{};

using StreamTable = FeatureTable<kStream, kNone>;
using RowsTable = FeatureTable<kRows, kNone>;

template <Rows::Function kFunction>
bool is_rows(const Kernel& kernel) {
  const Rows* rows = kernel.as<Rows>();
  return rows != nullptr && rows->function == kFunction;
}

Features rows_features(const Kernel& kernel, const Device& device, const Conditions&, const Bound&,
                       Tile) {
  return RowsTable::values(Inputs{kernel, device});
}

}  // namespace

NetDef elementwise_net() {
  return {.name = "elementwise",
          .covers = [](const Kernel& kernel) { return kernel.is<Stream>(); },
          .features = StreamTable::names(),
          .shared = StreamTable::kSharedCount,
          .lowest_logit = -6.0f,  // 0.25 %: the bound of small kernels is that of L2
          .pair_dtypes = {DType::kFp32, DType::kBf16, DType::kInt8},
          .make = [](const Kernel& kernel, const Device& device, const Conditions&, const Bound&,
                     Tile) { return StreamTable::values(Inputs{kernel, device}); }};
}

NetDef softmax_net() {
  return {.name = "softmax",
          .covers = is_rows<Rows::Function::kSoftmax>,
          .features = RowsTable::names(),
          .shared = RowsTable::kSharedCount,
          .lowest_logit = -5.0f,
          .pair_dtypes = {DType::kFp32, DType::kBf16, DType::kInt8},
          .make = rows_features};
}

NetDef layer_norm_net() {
  return {.name = "layer_norm",
          .covers = is_rows<Rows::Function::kNorm>,
          .features = RowsTable::names(),
          .shared = RowsTable::kSharedCount,
          .lowest_logit = -5.0f,
          .pair_dtypes = {DType::kFp32, DType::kBf16, DType::kInt8},
          .make = rows_features};
}

}  // namespace tilecast
