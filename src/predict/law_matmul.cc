// Laws of matrix products. The output is cut into tiles, one block each; k may be split over
// several blocks. Compute is the time of the blocks of one SM, for the tile and the split with
// which it is least.

#include <algorithm>
#include <array>
#include <cmath>

#include "predict/blocks.h"
#include "predict/law.h"

namespace tilecast {
namespace {

// ---- Single precision.

constexpr std::array<Tile, 5> kSingleTiles = {Tile{32, 32}, Tile{64, 32}, Tile{64, 64},
                                              Tile{128, 64}, Tile{128, 128}};
constexpr std::array<double, 4> kSingleSplits = {1, 2, 4, 8};

/// The same on matrix units that multiply FP32 (AMD). They reach 0.65 of their rate: the largest
/// products of MI100 run at 0.71, those of MI250 at 0.58.
double matrix_step_cycles(const Chip& chip, double area) {
  constexpr double kReached = 0.65;
  const double peak = chip.gpu.matrix_peak(DType::kFp32) / (chip.sms * chip.clock_hz);
  return chip.units * (2 * area / peak / kReached + 6);
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
double quantization_s(const ProductSizes& sizes, const Kernel& kernel, const Conditions& conditions,
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
  return chip.start * launches_s + 2 * bytes * ((1 - in_l2) / chip.dram_bytes_per_s + in_l2 / l2);
}

/// With one of the units that multiply FP32; `limit_s`: the least time that the board's power
/// allows.
template <class StepCycles>
LawTime single_precision_on(const ProductSizes& sizes, double memory_s, double limit_s,
                            const Chip& chip, const StepCycles& step_cycles) {
  constexpr BlockCost kCost = {5000, 0, 3000, 0.0375, 0.5, 16};
  constexpr double kSplitsFrom = 128;
  const Blocks best = best_blocks(sizes, kSingleTiles, kSingleSplits, kSplitsFrom, kCost.on(chip),
                                  chip.sms, step_cycles);
  const double compute_s = chip.seconds(best.cycles);
  return {single_precision_s(compute_s, memory_s, limit_s), best.tile};
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
  const ProductSizes sizes(gemm_of(kernel));
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
  const ProductSizes sizes(gemm);
  const DType dtype = kernel.compute_dtype();
  const TensorConstants& c = dtype_bits(dtype) >= 16 ? k16Bit : k8Bit;
  const double rate = chip.device.matmul_peak(dtype);
  const double limit = unaligned_flops_per_clock(gemm, kernel, chip);
  const bool by_element = limit < 1e30 && gemm.row_alignment == 1;
  const double per_clock = std::min(rate / (chip.sms * chip.clock_hz), limit);
  const double power = chip.energy * (chip.hbm ? c.energy_hbm : c.energy_gddr) * per_clock *
                       chip.sms * chip.clock_hz / chip.board_power_w;
  // A step takes so much longer (layers of experts, docs/law_study.md).
  const double conversion = converts_weights(kernel) ? 1.5 : 1;
  const auto step_cycles = [&](Tile, double area, double busy) {
    const double step = 2 * area / per_clock * conversion;
    return chip.units * std::max(step * (1 + power * busy), c.chain + 0.1 * step);
  };
  BlockCost whole_waves = c.block;
  whole_waves.idle_share = 1;
  const auto blocks = [&](const auto& tiles, const auto& splits, const BlockCost& cost) {
    return best_blocks(sizes, tiles, splits, 0, cost.on(chip), chip.sms, step_cycles);
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
