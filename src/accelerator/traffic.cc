#include "accelerator/traffic.h"

#include <algorithm>
#include <cmath>

namespace tilecast::accelerator {
namespace {

/// Elements that follow each other in memory: channels, as in NHWC and [r,s,c,k].
Dim contiguous(Operand operand, const Layer& layer) {
  return operand == Operand::kInput && layer.kind == LayerKind::kProduct ? Dim::kC : Dim::kK;
}

double element_bytes(const Dataflow& flow, Operand operand) {
  return operand == Operand::kOutput ? flow.stored_bytes
                                     : flow.buffers[static_cast<size_t>(operand)].element_bytes;
}

/// Bytes of the lines that a block of the operand touches.
double touched(const Layer& layer, const Dataflow& flow, Operand operand, const Sizes& block,
               const Memory& cache) {
  const auto run = static_cast<double>(size_of(block, contiguous(operand, layer)));
  const double bytes = run * element_bytes(flow, operand);
  const double rows = static_cast<double>(layer.elements(operand, block)) / run;
  return rows * std::ceil(bytes / cache.request_bytes) * cache.request_bytes;
}

}  // namespace

Sizes tile_counts(const Layer& layer, const Mapping& mapping) {
  Sizes counts = kOnes;
  for (size_t i = 0; i < kDimCount; ++i)
    counts[i] = (layer.sizes[i] + mapping.tile[i] - 1) / mapping.tile[i];
  return counts;
}

double miss_ratio(const Layer& layer, const Mapping& mapping, const Dataflow& flow, Operand operand,
                  const Memory& cache) {
  const Sizes counts = tile_counts(layer, mapping);
  const Dim run = contiguous(operand, layer);
  const double row_bytes =
      static_cast<double>(size_of(mapping.tile, run)) * element_bytes(flow, operand);
  double ratio = 1;
  Sizes block = mapping.tile;
  for (auto it = mapping.order.rbegin(); it != mapping.order.rend(); ++it) {
    const size_t dim = kDimNames.find(*it);
    if (counts[dim] == 1) continue;
    double distance = 0;
    for (size_t i = 0; i < kOperandCount; ++i) {
      const auto other = static_cast<Operand>(i);
      if (i != 1 || layer.uses(Operand::kWeight, Dim::kR))
        distance += touched(layer, flow, other, block, cache);
    }
    if (distance <= cache.bytes) {
      const auto n = static_cast<double>(counts[dim]);
      if (!layer.uses(operand, static_cast<Dim>(dim))) {
        ratio /= n;
      } else if (static_cast<Dim>(dim) == run && row_bytes < cache.request_bytes) {
        ratio /= std::min(n, cache.request_bytes / row_bytes);
      }
    }
    block[dim] = std::min(layer.sizes[dim], block[dim] * counts[dim]);
  }
  return ratio;
}

}  // namespace tilecast::accelerator
