#include "accelerator/traffic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tilecast::accelerator {
namespace {

/// How many times the bytes that it touches an operand takes in a cache. Rows that lie a multiple
/// of a power of two lines apart, and are shorter than that, fall into only some of the sets.
double crowding(const Layer& layer, const Dataflow& flow, Operand operand, const Sizes& block,
                const Memory& cache) {
  const double line = cache.request_bytes;
  const double stride = row_stride(layer, flow, operand) / line;
  if (stride < 1 || stride != std::floor(stride)) return 1;
  const auto lines_apart = static_cast<uint64_t>(stride);
  const auto power = static_cast<double>(lines_apart & -lines_apart);
  const double sets = std::max(1.0, cache.bytes / line / static_cast<double>(cache.ways));
  const double run = static_cast<double>(size_of(block, contiguous(operand, layer)));
  const double lines = std::ceil(run * element_bytes(flow, operand) / line);
  return std::max(1.0, std::min(power, sets) / lines);
}

/// The share of misses when `load` times the size of a cache is read again and again. A random
/// victim: a line survives until its next use with probability exp(-misses in between / lines of
/// the cache), so m = 1 - exp(-m * load). The least recently used one: none survives.
double repeated_miss_share(double load, const Memory& cache) {
  if (load <= 1) return 0;
  if (!cache.random_replacement) return 1;
  double share = 1;
  // Newton's method from above: the function is convex there, so every step stays above the root.
  for (int i = 0; i < 50; ++i) {
    const double survives = std::exp(-share * load);
    const double next = share - (share - 1 + survives) / (1 - load * survives);
    if (share - next < 1e-12) break;
    share = next;
  }
  return share;
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

Dim contiguous(Operand operand, const Layer& layer) {
  return operand == Operand::kInput && layer.kind == LayerKind::kProduct ? Dim::kC : Dim::kK;
}

double element_bytes(const Dataflow& flow, Operand operand) {
  return operand == Operand::kOutput ? flow.stored_bytes
                                     : flow.buffers[static_cast<size_t>(operand)].element_bytes;
}

double row_stride(const Layer& layer, const Dataflow& flow, Operand operand) {
  return static_cast<double>(size_of(layer.sizes, contiguous(operand, layer))) *
         element_bytes(flow, operand);
}

Sizes tile_counts(const Layer& layer, const Mapping& mapping) {
  Sizes counts = kOnes;
  for (size_t i = 0; i < kDimCount; ++i)
    counts[i] = (layer.sizes[i] + mapping.tile[i] - 1) / mapping.tile[i];
  return counts;
}

double miss_ratio(const Layer& layer, const Mapping& mapping, const Dataflow& flow, Operand operand,
                  double part_bytes, const Memory& cache) {
  const Sizes counts = tile_counts(layer, mapping);
  const Dim run = contiguous(operand, layer);
  const double row_bytes =
      static_cast<double>(size_of(mapping.tile, run)) * element_bytes(flow, operand);
  double ratio = 1;
  Sizes block = mapping.tile;
  // Parts of a row that one request moves: parts of a line follow each other within a tile.
  const double part = std::min(row_bytes, part_bytes);
  if (part < cache.request_bytes && touched(layer, flow, operand, block, cache) <= cache.bytes)
    ratio = std::ceil(row_bytes / cache.request_bytes) / std::ceil(row_bytes / part) *
            std::min(1.0, row_stride(layer, flow, operand) / cache.request_bytes);
  bool moved = false;  // again in the loops seen so far: before, the tile stays on the chip
  for (auto it = mapping.order.rbegin(); it != mapping.order.rend(); ++it) {
    const size_t dim = kDimNames.find(*it);
    if (counts[dim] == 1) continue;
    double distance = 0;
    for (size_t i = 0; i < kOperandCount; ++i) {
      const auto other = static_cast<Operand>(i);
      if (i != 1 || layer.uses(Operand::kWeight, Dim::kR))
        distance += touched(layer, flow, other, block, cache) *
                    (other == operand ? crowding(layer, flow, operand, block, cache) : 1);
    }
    double uses = 1;  // of a line in the iterations of this loop
    if (!layer.uses(operand, static_cast<Dim>(dim))) {
      if (moved) uses = static_cast<double>(counts[dim]);
    } else {
      moved = true;
      if (static_cast<Dim>(dim) == run && row_bytes < cache.request_bytes)
        uses = std::min(static_cast<double>(counts[dim]), cache.request_bytes / row_bytes);
    }
    const double missed = repeated_miss_share(distance / cache.bytes, cache);
    ratio *= (1 + missed * (uses - 1)) / uses;
    block[dim] = std::min(layer.sizes[dim], block[dim] * counts[dim]);
  }
  return ratio;
}

}  // namespace tilecast::accelerator
