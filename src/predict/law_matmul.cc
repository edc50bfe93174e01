// Laws of matrix products. The output is cut into tiles, one block each; k may be split over
// several blocks. Compute is the time of the blocks of one SM, for the tile and the split with
// which it is least.

#include <algorithm>
#include <array>
#include <cmath>

#include "predict/law.h"

namespace tilecast {
namespace {

/// Sizes of a product.
struct Sizes {
  double batch, m, n, k;

  explicit Sizes(const Gemm& gemm)
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
};

/// The best tile and its cycles.
struct Blocks {
  double cycles = 1e30;
  Tile tile;
};

/// `step_cycles(tile, area, busy)`: cycles of an SM for one step of k of a tile while this share of
/// the SMs has a block, on average.
template <size_t kTiles, size_t kSplits, class StepCycles>
Blocks best_blocks(const Sizes& sizes, const std::array<Tile, kTiles>& tiles,
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
      const double block = std::max(sizes.k / split, cost.shortest_k) * step + cost.element * area;
      double cycles = waves * block + cost.fill;
      // Splits are 1, 2, 4, …: the logarithm of split s is s.
      if (s > 0) cycles += cost.split_in_two + cost.split * (1 + static_cast<double>(s));
      if (cycles < best.cycles) best = {cycles, tile};
    }
  }
  return best;
}

// Powers without calls: a law is computed for every kernel.
double root_of_squares(double a, double b) { return std::sqrt(a * a + b * b); }
double power_14(double x) {
  const double square = x * x, fourth = square * square;
  return fourth * fourth * fourth * square;
}

// ---- Single precision.

constexpr std::array<Tile, 5> kSingleTiles = {Tile{32, 32}, Tile{64, 32}, Tile{64, 64},
                                              Tile{128, 64}, Tile{128, 128}};
constexpr std::array<double, 4> kSingleSplits = {1, 2, 4, 8};

/// Cycles of an SM for one step of k of a tile on its FP32 lanes. Beside each FMA a warp issues
/// other instructions, more of them for smaller tiles. A scheduler issues one instruction per
/// clock, so they take FMAs' places where it has 32 lanes, and not where it has 16.
double vector_step_cycles(const Chip& chip, Tile tile, double area) {
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
  return std::max(on_lanes, issue) + kLoopOverhead;
}

/// The same on matrix units that multiply FP32 (AMD). They reach 0.65 of their rate: the largest
/// products of MI100 run at 0.71, those of MI250 at 0.58.
double matrix_step_cycles(const Chip& chip, double area) {
  constexpr double kReached = 0.65;
  const double peak = chip.gpu.matrix_peak(DType::kFp32) / (chip.sms * chip.clock_hz);
  return 2 * area / peak / kReached + 6;
}

/// Energy of a FLOP on FP32 lanes, J. From the rates at which boards at their power limit run: P4,
/// T4 and A100-40 (16, 12 and 7 nm) 15.7 to 16.5 pJ, L4 (5 nm) 7.2.
double vector_energy(const Chip& chip) {
  constexpr double kUnknownNm = 5;  // of current data-center GPUs
  return chip.gpu.process_nm.value_or(kUnknownNm) >= 6.5 ? 16.5e-12 : 7.2e-12;
}

// ---- Low precision.

constexpr std::array<Tile, 7> kTensorTiles = {Tile{16, 64},  Tile{32, 64},  Tile{64, 64},
                                              Tile{64, 128}, Tile{128, 64}, Tile{128, 128},
                                              Tile{128, 256}};
constexpr std::array<double, 5> kTensorSplits = {1, 2, 4, 8, 16};

/// The one kernel behind PipeWeave's measurements has large tiles, is never split and runs in whole
/// waves. The kernels that load element by element have large tiles, too.
constexpr std::array<Tile, 2> kLargeTiles = {Tile{128, 128}, Tile{128, 256}};
constexpr std::array<double, 1> kNoSplits = {1};

/// Constants of the law of low precision, fitted on A100, H100, H200, B200 and L40S
/// (docs/law_study.md).
struct TensorConstants {
  BlockCost block;
  double launch_us;
  double chain;                    ///< least cycles of a step of k
  double ramp_us;                  ///< until DRAM streams at its full rate
  double l2_bytes;                 ///< per clock and SM
  double energy_hbm, energy_gddr;  ///< J per FLOP
};
constexpr TensorConstants k16Bit = {
    {2300, 1050, 0, 0.03, 0.05, 64}, 1.6, 1.6, 2.8, 5.5, 0.25e-12, 0.60e-12};
constexpr TensorConstants k8Bit = {
    {2500, 20000, 0, 0.10, 0.7, 64}, 1.7, 1.0, 2.3, 5.0, 0.20e-12, 0.50e-12};

/// FLOPs per clock and SM of 16-bit products whose rows are not all multiples of 16 bytes long: no
/// unit copies such rows, so threads load them element by element (below 4 bytes) or word by word.
/// H100's cuBLAS runs CUTLASS kernels for Turing at 85 to 132 TFLOP/s and for Ampere at 194 to 259
/// then, for rows that differ in one element from ones that run at 800 (data/measurements). All
/// SMs since Volta load 32 words a clock. Infinity for aligned rows, and on AMD's GPUs.
double unaligned_flops_per_clock(const Gemm& gemm, const Kernel& kernel, const Chip& chip) {
  constexpr double kByElement = 400, kByWord = 900;
  const bool plain = kernel.scheme == QuantScheme::kNone && dtype_bits(kernel.dtype) == 16;
  if (!plain || gemm.row_alignment >= 8 || chip.amd) return 1e30;
  return gemm.row_alignment == 1 ? kByElement : kByWord;
}

/// Copies of the weight over which a benchmark of this software alternates.
double weight_copies(const Conditions& conditions, double weight_bytes, const Chip& chip) {
  if (conditions.caches == Caches::kWarm) return 1;
  if (conditions.software == Software::kTensorRtLlm)
    return std::clamp(std::ceil(chip.l2_bytes / weight_bytes), 1.0, 5.0);
  return 6;
}

/// Share of the operands that come from L2.
double share_in_l2(const Conditions& conditions, double weight_bytes, double other_bytes,
                   const Chip& chip) {
  if (conditions.caches == Caches::kCold) return 0;
  const double copies = weight_copies(conditions, weight_bytes, chip);
  return ramp(1.08 - (copies * weight_bytes + other_bytes) / chip.l2_bytes, 0, 0.16);
}

/// Seconds of the launches that quantize the activations before the product.
double quantization_s(const Sizes& sizes, const Kernel& kernel, const Conditions& conditions,
                      const Chip& chip) {
  const bool quantizes = scheme_info(kernel.scheme).compute_dtype.has_value();
  if (!quantizes) return 0;
  const double launches_s = conditions.software == Software::kTensorRtLlm ? 9e-6
                            : conditions.software == Software::kPipeWeave ? 1.5e-6
                                                                          : 3e-6;
  // Reads 16 bits and writes 8 of each element; two passes.
  const double bytes = 3 * sizes.batch * sizes.m * sizes.k;
  const double in_l2 = 1 - ramp(bytes / chip.l2_bytes, 0.75, 1.25);
  const double l2 = std::max(chip.l2_bytes_per_s(24), chip.dram_bytes_per_s);
  return launches_s + 2 * bytes * ((1 - in_l2) / chip.dram_bytes_per_s + in_l2 / l2);
}

/// With one of the units that multiply FP32; `limit_s`: the least time that the board's power
/// allows.
template <class StepCycles>
LawTime single_precision_on(const Sizes& sizes, double memory_s, double limit_s, const Chip& chip,
                            const StepCycles& step_cycles) {
  constexpr BlockCost kCost = {5000, 0, 3000, 0.0375, 0.5, 16};
  constexpr double kSplitsFrom = 128;
  const Blocks best =
      best_blocks(sizes, kSingleTiles, kSingleSplits, kSplitsFrom, kCost, chip.sms, step_cycles);
  const double compute_s = chip.seconds(best.cycles);
  const double free_s = overlapped_s(compute_s, memory_s);
  // A sharp maximum without a corner.
  const double larger = std::max(free_s, limit_s), smaller = std::min(free_s, limit_s);
  return {larger * std::pow(1 + power_14(smaller / larger), 1.0 / 14), best.tile};
}

}  // namespace

int64_t weight_bits(const Kernel& kernel) {
  return dtype_bits(kernel.scheme == QuantScheme::kNone ? kernel.dtype
                                                        : scheme_info(kernel.scheme).weight_dtype);
}

bool converts_weights(const Kernel& kernel) {
  return kernel.scheme != QuantScheme::kNone && !scheme_info(kernel.scheme).compute_dtype;
}

LawTime single_precision_law(const Kernel& kernel, const Chip& chip, const Conditions&) {
  const Sizes sizes(gemm_of(kernel));
  const auto bytes = static_cast<double>(kernel.bytes());
  // Calls one after the other find small operands in L2.
  const double from_dram = 0.4 + 0.6 * ramp(bytes / chip.l2_bytes, 0.4, 0.6);
  const double memory_s = from_dram * bytes / chip.dram_bytes_per_s;
  const double limit_s =
      static_cast<double>(kernel.flops) * vector_energy(chip) / chip.board_power_w;
  const LawTime lanes = single_precision_on(
      sizes, memory_s, limit_s, chip,
      [&](Tile tile, double area, double) { return vector_step_cycles(chip, tile, area); });
  if (chip.gpu.matrix_peak(DType::kFp32) == 0) return lanes;
  // The power that matrix units need for FP32 is not known: it is not taken to limit them.
  const LawTime matrix = single_precision_on(
      sizes, memory_s, 0, chip,
      [&](Tile, double area, double) { return matrix_step_cycles(chip, area); });
  return matrix.seconds < lanes.seconds ? matrix : lanes;
}

LawTime low_precision_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const Gemm gemm = gemm_of(kernel);
  const Sizes sizes(gemm);
  const DType dtype = kernel.compute_dtype();
  const TensorConstants& c = dtype_bits(dtype) >= 16 ? k16Bit : k8Bit;
  const double rate = chip.device.matmul_peak(dtype);
  const double limit = unaligned_flops_per_clock(gemm, kernel, chip);
  const bool by_element = limit < 1e30 && gemm.row_alignment == 1;
  const double per_clock = std::min(rate / (chip.sms * chip.clock_hz), limit);
  const double power = (chip.hbm ? c.energy_hbm : c.energy_gddr) * per_clock * chip.sms *
                       chip.clock_hz / chip.board_power_w;
  // A step takes so much longer (layers of experts, docs/law_study.md).
  const double conversion = converts_weights(kernel) ? 1.5 : 1;
  const auto step_cycles = [&](Tile, double area, double busy) {
    const double step = 2 * area / per_clock * conversion;
    return std::max(step * (1 + power * busy), c.chain + 0.1 * step);
  };
  BlockCost whole_waves = c.block;
  whole_waves.idle_share = 1;
  const auto blocks = [&](const auto& tiles, const auto& splits, const BlockCost& cost) {
    return best_blocks(sizes, tiles, splits, 0, cost, chip.sms, step_cycles);
  };
  const Blocks best = conditions.software == Software::kPipeWeave
                          ? blocks(kLargeTiles, kNoSplits, whole_waves)
                      : by_element ? blocks(kLargeTiles, kTensorSplits, c.block)
                                   : blocks(kTensorTiles, kTensorSplits, c.block);
  const auto bytes = static_cast<double>(kernel.bytes());
  const double weight_bytes =
      sizes.batch * sizes.n * sizes.k * static_cast<double>(weight_bits(kernel)) / 8;
  const double warm =
      share_in_l2(conditions, weight_bytes, std::max(0.0, bytes - weight_bytes), chip);
  const double cold_s = bytes / chip.dram_bytes_per_s;
  const double memory_s =
      cold_s * (1 - warm) + std::min(cold_s, bytes / chip.l2_bytes_per_s(c.l2_bytes)) * warm +
      c.ramp_us * 1e-6 * bytes / (bytes + chip.dram_bytes_per_s * 2e-6) * (1 - warm / 2);
  return {launch_latency_s(c.launch_us, chip) + quantization_s(sizes, kernel, conditions, chip) +
              root_of_squares(memory_s, chip.seconds(best.cycles)),
          best.tile};
}

}  // namespace tilecast
