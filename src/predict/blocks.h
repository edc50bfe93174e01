#pragma once

// Shared by the laws of products and of convolutions: blocks of an SM, one for each tile of the
// output, and the FP32 lanes that run them.

#include <algorithm>
#include <cmath>
#include <span>

#include "laws/tile.h"
#include "ops/kernel.h"
#include "predict/chip.h"

namespace tilecast {

/// Sizes of a product.
struct ProductSizes {
  double batch, m, n, k;

  ProductSizes(double batch, double m, double n, double k) : batch(batch), m(m), n(n), k(k) {}
  explicit ProductSizes(const Gemm& gemm)
      : batch(static_cast<double>(gemm.batch)),
        m(static_cast<double>(gemm.m)),
        n(static_cast<double>(gemm.n)),
        k(static_cast<double>(gemm.k)) {}
  double tiles(Tile tile) const { return batch * ceil_of(m / tile.m) * ceil_of(n / tile.n); }
};

/// Cycles that the blocks of an SM take beside their steps of k.
struct BlockCost {
  double fill;              ///< start and end of the kernel
  double split = 0;         ///< for a split of k in two; grows with its logarithm
  double split_in_two = 0;  ///< added for any split
  double element;           ///< per element of a tile: its epilogue
  double idle_share;        ///< see waves_of
  double shortest_k;        ///< steps of k that a block takes at least
  double latency = 0;       ///< of a step of k, beside the work of the SM's blocks: paid once

  /// With a calibration's factor on all but the steps of k.
  BlockCost on(const Chip& chip) const {
    return {fill * chip.blocks,    split * chip.blocks, split_in_two * chip.blocks,
            element * chip.blocks, idle_share,          shortest_k,
            latency * chip.blocks};
  }
};

/// The best tile and its cycles.
struct Blocks {
  double cycles = kNever;
  Tile tile;
  double busy = 1;  ///< mean share of the SMs that has a block
};

inline BlockCost cost_of(const SplitBlocks& c) {
  return {.fill = c.fill_cycles,
          .split_in_two = c.split_in_two_cycles,
          .element = c.element_cycles,
          .idle_share = c.idle_share,
          .shortest_k = c.shortest_k};
}

/// k is not split.
inline constexpr double kUnsplit[] = {1};

/// `step_cycles(tile, area, busy)`: cycles of an SM for one step of k of a tile while this share of
/// the SMs has a block, on average.
template <class StepCycles>
Blocks best_blocks(const ProductSizes& sizes, std::span<const Tile> tiles,
                   std::span<const double> splits, double smallest_k_to_split,
                   const BlockCost& cost, double sms, const StepCycles& step_cycles) {
  Blocks best;
  for (const Tile tile : tiles) {
    const double area = static_cast<double>(tile.m) * tile.n;
    const double count = sizes.tiles(tile) / sms;
    for (size_t s = 0; s < splits.size(); ++s) {
      const double split = splits[s];
      if (s > 0 && sizes.k < smallest_k_to_split * split) break;
      const double waves = waves_of(count * split, cost.idle_share);
      const double busy = count * split / waves;
      const double step = step_cycles(tile, area, busy);
      const double steps = std::max(sizes.k / split, cost.shortest_k);
      double cycles =
          waves * (steps * step + cost.element * area) + steps * cost.latency + cost.fill;
      // Splits are 1, 2, 4, …: the logarithm of split s is s.
      if (s > 0) cycles += cost.split_in_two + cost.split * (1 + static_cast<double>(s));
      if (cycles < best.cycles) best = {cycles, tile, busy};
    }
  }
  return best;
}

// Powers without calls: a law is computed for every kernel.
inline double root_of_squares(double a, double b) { return std::sqrt(a * a + b * b); }
inline double power_14(double x) {
  const double square = x * x, fourth = square * square;
  return fourth * fourth * fourth * square;
}

/// The perimeter of a tile over its area, over that of a tile of 128 x 128.
inline double perimeter_of(double area) {
  constexpr double kSide = 128;
  return std::sqrt(kSide * kSide / area);
}

/// Cycles of an SM for one step of k of a tile on its FP32 lanes. Beside each FMA a warp issues
/// other instructions, more of them for smaller tiles. A scheduler issues one instruction per
/// clock, so they take FMAs' places where it has 32 lanes, and not where it has 16.
inline double vector_step_cycles(const Chip& chip, Tile tile, double area) {
  constexpr double kWarp = 32;
  const LaneConstants& c = chip.laws.lanes;
  const double lanes = chip.gpu.vector_peak(DType::kFp32) / (2 * chip.sms * chip.clock_hz);
  const double perimeter = perimeter_of(static_cast<double>(tile.m) * tile.n);
  const double other = chip.gpu.issue_per_clock > 1
                           ? c.dual_issue_per_fma_ratio
                           : c.other_per_fma_ratio + c.loads_per_fma_ratio * perimeter;
  const double on_lanes =
      area / lanes / c.reached_share * (1 + c.perimeter_ratio * (perimeter - 1));
  const double issue = area / kWarp * (1 + other) / static_cast<double>(chip.gpu.schedulers_per_sm);
  return chip.units * (std::max(on_lanes, issue) + c.loop_cycles);
}

inline double process_nm(const Chip& chip) {
  return chip.gpu.process_nm.value_or(chip.laws.lanes.unknown_process_nm);
}

/// Energy of a FLOP on FP32 lanes, J.
inline double vector_energy(const Chip& chip) {
  const LaneConstants& c = chip.laws.lanes;
  return chip.energy * (process_nm(chip) >= c.old_process_nm ? c.old_process_j_per_flop
                                                             : c.new_process_j_per_flop);
}

/// Compute and memory overlap, but not fully; `limit_s` is the least time that the board's power
/// allows: a sharp maximum without a corner.
inline double single_precision_s(double compute_s, double memory_s, double limit_s) {
  constexpr double kExponent = 14;
  const double free_s = overlapped_s(compute_s, memory_s);
  const double larger = std::max(free_s, limit_s), smaller = std::min(free_s, limit_s);
  return larger * std::pow(1 + power_14(smaller / larger), 1 / kExponent);
}

}  // namespace tilecast
