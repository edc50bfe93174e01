// Kernels that stream memory, and those that go over rows.

#include <algorithm>

#include "predict/features.h"

namespace tilecast {
namespace {

/// Newer NVIDIA devices come nearer to their bandwidth in kernels that go over rows twice; the
/// process node stands for the generation. AMD's kernels are others: one level for all.
float generation(const Device& device) {
  constexpr double kUnknownNode = 5;  // of current data-center GPUs
  return device.vendor == "amd" ? 4.0f : log2_of(device.gpu().process_nm.value_or(kUnknownNode));
}

float bytes_per_l2(const Kernel& kernel, const Device& device) {
  return log2_of(static_cast<double>(kernel.bytes()) / static_cast<double>(device.gpu().l2_bytes));
}

Features stream(const Kernel& kernel, const Device& device, const Conditions&, const Bound&, Tile) {
  return {bytes_per_l2(kernel, device),
          log2_of((1.0 + static_cast<double>(kernel.flops)) /
                  std::max(1.0, static_cast<double>(kernel.bytes())))};
}

Features rows(const Kernel& kernel, const Device& device, const Conditions&, const Bound&, Tile) {
  return {bytes_per_l2(kernel, device),
          log2_of(static_cast<double>(std::get<Rows>(kernel.shape).columns)), generation(device),
          device.vendor == "amd" ? 1.0f : 0.0f};
}

}  // namespace

NetDef elementwise_net() {
  // These kernels come in more kinds than were measured: no two features here may be tied to each
  // other in the measured ones, or the networks could say anything where the tie is broken.
  return {.name = "elementwise",
          .features = {"log2_bytes_per_l2", "log2_flops_per_byte"},
          .shared = 2,
          .lowest_logit = -6.0f,  // 0.25 %: the bound of small kernels is that of L2
          .pair_ops = {"add", "gelu", "dropout", "embedding", "copy"},
          .make = stream};
}

NetDef row_net(std::string_view name, const char* op) {
  return {.name = name,
          .features = {"log2_bytes_per_l2", "log2_columns", "log2_process_node", "is_amd"},
          .shared = 4,
          .lowest_logit = -5.0f,
          .pair_ops = {op},
          .make = rows};
}

}  // namespace tilecast
