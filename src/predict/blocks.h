#pragma once

// Shared by the laws of products and of convolutions: blocks of an SM, one for each tile of the
// output, and the FP32 lanes that run them.

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/kernel.h"
#include "predict/chip.h"
#include "predict/tile.h"

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
  double fill;          ///< start and end of the kernel
  double split;         ///< for a split of k in two; grows with its logarithm
  double split_in_two;  ///< added for any split
  double element;       ///< per element of a tile: its epilogue
  double idle_share;    ///< see waves_of
  double shortest_k;    ///< steps of k that a block takes at least
  double latency = 0;   ///< of a step of k, beside the work of the SM's blocks: paid once

  /// With a calibration's factor on all but the steps of k.
  BlockCost on(const Chip& chip) const {
    return {fill * chip.blocks,    split * chip.blocks, split_in_two * chip.blocks,
            element * chip.blocks, idle_share,          shortest_k,
            latency * chip.blocks};
  }
};

/// The best tile and its cycles.
struct Blocks {
  double cycles = 1e30;
  Tile tile;
};

/// `step_cycles(tile, area, busy)`: cycles of an SM for one step of k of a tile while this share of
/// the SMs has a block, on average.
template <size_t kTiles, size_t kSplits, class StepCycles>
Blocks best_blocks(const ProductSizes& sizes, const std::array<Tile, kTiles>& tiles,
                   const std::array<double, kSplits>& splits, double smallest_k_to_split,
                   const BlockCost& cost, double sms, const StepCycles& step_cycles) {
  Blocks best;
  for (const Tile tile : tiles) {
    const double area = static_cast<double>(tile.m) * tile.n;
    const double count = sizes.tiles(tile) / sms;
    for (size_t s = 0; s < kSplits; ++s) {
      const double split = splits[s];
      if (s > 0 && sizes.k < smallest_k_to_split * split) break;
      const double waves = waves_of(count * split, cost.idle_share);
      const double step = step_cycles(tile, area, count * split / waves);
      const double steps = std::max(sizes.k / split, cost.shortest_k);
      double cycles =
          waves * (steps * step + cost.element * area) + steps * cost.latency + cost.fill;
      // Splits are 1, 2, 4, …: the logarithm of split s is s.
      if (s > 0) cycles += cost.split_in_two + cost.split * (1 + static_cast<double>(s));
      if (cycles < best.cycles) best = {cycles, tile};
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

/// Cycles of an SM for one step of k of a tile on its FP32 lanes. Beside each FMA a warp issues
/// other instructions, more of them for smaller tiles. A scheduler issues one instruction per
/// clock, so they take FMAs' places where it has 32 lanes, and not where it has 16.
inline double vector_step_cycles(const Chip& chip, Tile tile, double area) {
  constexpr double kReached = 0.97;         // of the lanes' rate, by V100's and A100's largest
  constexpr double kLoopOverhead = 6;       // cycles
  constexpr double kOther = 0.12;           // instructions per FMA that do not depend on the tile
  constexpr double kLoads = 0.14;           // those that do, for a tile of 128 x 128
  constexpr double kOtherDualIssue = 0.05;  // with two instructions per clock (Pascal)
  constexpr double kWarp = 32;
  const double lanes = chip.gpu.vector_peak(DType::kFp32) / (2 * chip.sms * chip.clock_hz);
  const double perimeter = std::sqrt(128.0 * 128.0 / (static_cast<double>(tile.m) * tile.n));
  const double other = chip.gpu.issue_per_clock > 1 ? kOtherDualIssue : kOther + kLoads * perimeter;
  const double on_lanes = area / lanes / kReached * (1 + 0.02 * (perimeter - 1));
  const double issue = area / kWarp * (1 + other) / static_cast<double>(chip.gpu.schedulers_per_sm);
  return chip.units * (std::max(on_lanes, issue) + kLoopOverhead);
}

/// Energy of a FLOP on FP32 lanes, J. From the rates at which boards at their power limit run: P4,
/// T4 and A100-40 (16, 12 and 7 nm) 15.7 to 16.5 pJ, L4 (5 nm) 7.2.
inline double vector_energy(const Chip& chip) {
  constexpr double kUnknownNm = 5;  // of current data-center GPUs
  return chip.energy * (chip.gpu.process_nm.value_or(kUnknownNm) >= 6.5 ? 16.5e-12 : 7.2e-12);
}

/// Compute and memory overlap, but not fully; `limit_s` is the least time that the board's power
/// allows: a sharp maximum without a corner.
inline double single_precision_s(double compute_s, double memory_s, double limit_s) {
  const double free_s = overlapped_s(compute_s, memory_s);
  const double larger = std::max(free_s, limit_s), smaller = std::min(free_s, limit_s);
  return larger * std::pow(1 + power_14(smaller / larger), 1.0 / 14);
}

}  // namespace tilecast
