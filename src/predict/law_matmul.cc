// Laws of matrix products. The output is cut into tiles, one block each; k may be split over
// several blocks. Compute is the time of the blocks of one SM, for the tile and the split with
// which it is least.

#include <algorithm>
#include <cmath>
#include <span>

#include "graph/dtype.h"
#include "predict/blocks.h"
#include "predict/law.h"
#include "predict/law_cdna.h"

namespace tilecast {
namespace {

// ---- Single precision.

/// The kernels of a routine of the library. cuBLAS's batched routine has few for GPUs before Hopper
/// and never splits k.
struct SingleKernels {
  std::span<const Tile> tiles;
  bool splits = true;
  bool small_tiles = false;  ///< of linear layers on GP100, which wait for shared memory
};

SingleKernels single_kernels(const Gemm& gemm, const Chip& chip) {
  const MatmulConstants& c = chip.laws.matmul;
  const Architecture architecture = chip.gpu.architecture;
  // On GP10x cards the files contradict each other: docs/accuracy.md. Without a bias, the output
  // layers of models run at the rate of other tiles.
  if (gemm.adds_bias && architecture == Architecture::kPascal && chip.hbm)
    return {c.linear_pascal_tiles, true, true};
  if (!gemm.batched || chip.amd || architecture >= Architecture::kHopper) return {c.tiles};
  if (architecture >= Architecture::kAmpere) return {c.batched_ampere_tiles, false};
  if (architecture >= Architecture::kVolta) return {c.batched_volta_tiles, false};
  return {c.batched_pascal_tiles, false};
}

/// J of a FLOP of a tile on FP32 lanes, where the board's power limits. Lanes work on whole tiles,
/// padding included. The smaller the tile, the more bytes move for each FLOP.
double energy_of(const TileEnergy& energy, Tile tile) {
  return energy.j_per_flop + energy.j_per_byte * 2 * (1.0 / tile.m + 1.0 / tile.n);
}

TileEnergy tile_energy(const Chip& chip) {
  const MatmulConstants& c = chip.laws.matmul;
  const double nm = process_nm(chip);
  const TileEnergy energy = nm < chip.laws.lanes.old_process_nm  ? c.new_process_energy
                            : chip.hbm || nm < c.warm_process_nm ? c.cool_energy
                                                                 : c.warm_energy;
  return {chip.energy * energy.j_per_flop, chip.energy * energy.j_per_byte};
}

/// As vector_step_cycles, on matrix units that multiply FP32 (AMD).
double matrix_step_cycles(const Chip& chip, double area) {
  const MatmulConstants& c = chip.laws.matmul;
  const double peak = chip.gpu.matrix_peak(DType::kFp32) / (chip.sms * chip.clock_hz);
  return chip.units * (2 * area / peak / c.matrix_reached_share + c.matrix_loop_cycles);
}

// ---- Low precision.

BlockCost cost_of(const TensorBlocks& c) {
  return {.fill = c.fill_cycles,
          .split = c.split_cycles,
          .element = c.element_cycles,
          .idle_share = c.idle_share,
          .shortest_k = c.shortest_k};
}

BlockCost cost_of(const AmdBlocks& c) {
  return {.fill = c.fill_cycles,
          .split = c.split_cycles,
          .split_in_two = c.split_in_two_cycles,
          .element = c.element_cycles,
          .idle_share = c.idle_share,
          .shortest_k = c.shortest_k,
          .latency = c.latency_cycles};
}

/// nullptr: not AMD's.
const AmdBlocks* amd_blocks(const Chip& chip) {
  if (!chip.amd) return nullptr;
  const TensorMatmulConstants& c = chip.laws.tensor_matmul;
  return chip.gpu.matrix_instruction == MatrixInstruction::kNone ? &c.packed_lanes
                                                                 : &c.matrix_cores;
}

/// Share of the packed rate that 16-bit products with sums in FP32 have.
double widening_share(const Chip& chip, DType dtype, const Conditions& conditions) {
  const bool slow = chip.gpu.architecture == Architecture::kGcn5 && has_16_bits(dtype);
  return slow && !conditions.half_sums ? chip.laws.tensor_matmul.gcn5_widening_share : 1;
}

/// FLOPs per clock and SM of products in TF32 and 16 bits whose rows are not all multiples of 16
/// bytes long: no unit copies such rows, so threads load them element by element (below 4 bytes) or
/// word by word. kNever for aligned rows, and on AMD's GPUs, where odd rows cost a fifth at most
/// (research/law_study.md).
double unaligned_flops_per_clock(const Gemm& gemm, const Kernel& kernel, const Chip& chip) {
  const TensorMatmulConstants& c = chip.laws.tensor_matmul;
  if (kernel.scheme != QuantScheme::kNone || chip.amd) return kNever;
  if (kernel.compute_dtype() == DType::kTf32)
    return gemm.row_alignment >= c.aligned_tf32_elements ? kNever : c.word_flops_per_cycle / 2;
  if (!has_16_bits(kernel.dtype) || gemm.row_alignment >= c.aligned_16_bit_elements) return kNever;
  return gemm.row_alignment == 1 ? c.element_flops_per_cycle : c.word_flops_per_cycle;
}

/// Copies of the weight over which a benchmark of this software alternates.
double weight_copies(const Conditions& conditions, double weight_bytes, const Chip& chip) {
  if (conditions.caches == Caches::kWarm) return 1;
  const SoftwareTraits& traits = traits_of(conditions.software);
  const double most = traits.benchmark_weight_copies;
  return traits.benchmark_copies_fill_l2
             ? std::clamp(std::ceil(chip.l2_bytes / weight_bytes), 1.0, most)
             : most;
}

/// Share of the operands that come from L2.
double share_in_l2(const Conditions& conditions, double weight_bytes, double other_bytes,
                   const Chip& chip) {
  if (conditions.caches == Caches::kCold) return 0;
  const double copies = weight_copies(conditions, weight_bytes, chip);
  const TensorMatmulConstants& c = chip.laws.tensor_matmul;
  return ramp(c.l2_fit_ratio - (copies * weight_bytes + other_bytes) / chip.l2_bytes, 0,
              c.l2_fit_span_ratio);
}

/// Seconds of the launches that quantize the activations before the product.
double quantization_s(const ProductSizes& sizes, const Kernel& kernel, const Conditions& conditions,
                      double launches_s, const Chip& chip) {
  const SoftwareTraits& traits = traits_of(conditions.software);
  const bool quantizes =
      scheme_info(kernel.scheme).compute_dtype.has_value() && traits.quantizes_activations;
  if (!quantizes) return 0;
  const QuantizationLaunches& c = chip.laws.tensor_matmul.quantization;
  // Reads 16 bits and writes 8 of each element; two passes.
  constexpr double kElementBytes = 3;
  const double bytes = kElementBytes * sizes.batch * sizes.m * sizes.k;
  const double in_l2 = 1 - ramp(bytes / chip.l2_bytes, c.all_in_l2_ratio, c.none_in_l2_ratio);
  const double l2 = std::max(chip.l2_bytes_per_s(c.l2_bytes_per_cycle), chip.dram_bytes_per_s);
  // Where each token gets a scale: a block for each row, whatever its length.
  const double row_cycles =
      kernel.scheme == QuantScheme::kFp8 ? traits.fp8_scale_cycles_per_row : 0;
  const double rows_s = chip.seconds(chip.blocks * row_cycles * sizes.batch * sizes.m / chip.sms);
  return chip.start * launches_s + rows_s +
         2 * bytes * ((1 - in_l2) / chip.dram_bytes_per_s + in_l2 / l2);
}

/// The part of it in the law: residuals are learned beside these launches, in FP4 too.
double measured_quantization_s(const ProductSizes& sizes, const Kernel& kernel,
                               const Conditions& conditions, const Chip& chip) {
  const double launches_s = traits_of(conditions.software).quantization_launches_s;
  return quantization_s(sizes, kernel, conditions, launches_s, chip);
}

/// What the kernel before the product has done of it.
double fused_quantization_s(const ProductSizes& sizes, const Kernel& kernel,
                            const Conditions& conditions, const Chip& chip) {
  if (!kernel.quantized_input) return 0;
  if (kernel.scheme != QuantScheme::kFp4)
    return measured_quantization_s(sizes, kernel, conditions, chip);
  const double launches_s = traits_of(conditions.software).fp4_quantization_launches_s;
  return quantization_s(sizes, kernel, conditions, launches_s, chip);
}

/// Cycles of an SM for one step of k of linear layers on GP100. A thread of these kernels holds 16
/// results or few warps run: beside the lanes, shared memory allows so many FMAs a clock and SM.
double pascal_step_cycles(const Chip& chip, Tile tile, double area) {
  const MatmulConstants& c = chip.laws.matmul;
  const double from_shared =
      tile.m == tile.n ? c.pascal_square_fmas_per_cycle : c.pascal_long_fmas_per_cycle;
  return root_of_squares(vector_step_cycles(chip, tile, area), chip.units * area / from_shared);
}

/// Bytes from DRAM: calls one after the other find small operands in L2.
double from_dram(double bytes, const Chip& chip) {
  const MatmulConstants& c = chip.laws.matmul;
  return bytes * (c.least_dram_share + (1 - c.least_dram_share) * ramp(bytes / chip.l2_bytes,
                                                                       c.all_in_l2_ratio,
                                                                       c.none_in_l2_ratio));
}

/// Seconds of the operands that Pascal's L2 loses before all blocks that share them have read them.
/// The blocks of a long k drift apart, the more of them have run the further; then each block reads
/// its rows from DRAM, 32 bytes of a row at a time.
double drift_s(const ProductSizes& sizes, Tile tile, double bytes, const Chip& chip) {
  if (chip.gpu.architecture != Architecture::kPascal) return 0;
  const PascalDrift& c = chip.laws.matmul.drift;
  const double blocks = sizes.tiles(tile), k = sizes.k / c.steps_of_k;
  const double area = static_cast<double>(tile.m) * tile.n;
  const double apart = k * k *
                       std::pow(blocks / sizes.batch * area / c.results, c.results_exponent) *
                       std::sqrt(c.reference_l2_bytes / chip.l2_bytes);
  const double read = kFp32Bytes * blocks * (tile.m + tile.n) * sizes.k;
  // In place of the bytes that count otherwise, so that more of these never take less time.
  const double more = std::max(0.0, read / c.dram_share - from_dram(bytes, chip));
  return apart / (1 + apart) * more / chip.dram_bytes_per_s;
}

/// How much longer the steps of k of linear layers take from rows of about 32,000 elements on, from
/// Volta to Ampere.
double long_rows(const Gemm& gemm, const Chip& chip) {
  const Architecture architecture = chip.gpu.architecture;
  const bool known = architecture >= Architecture::kVolta && architecture <= Architecture::kAmpere;
  if (!known || gemm.batched) return 1;
  const LongRows& c = chip.laws.matmul.long_rows;
  return 1 + c.added_ratio * ramp(static_cast<double>(gemm.k), c.from_k, c.to_k);
}

/// Share of the least time that the board's power allows that a kernel of these seconds takes. The
/// limit holds for a mean over milliseconds: others that need less power come in between.
double held_back(double seconds, const Chip& chip) {
  const PowerInTime& c = chip.laws.matmul.power;
  return c.shortest_share +
         (1 - c.shortest_share) * ramp(std::log(seconds / c.from_s), 0, chip.power_log);
}

/// Batched products of one row or one column. They were never measured: below Hopper the routine's
/// tiles would multiply 64 to 128 rows of padding, but cuBLAS hands such products to kernels for a
/// matrix and a vector, which read the matrix once.
LawTime matrix_vector_law(double bytes, const Chip& chip) {
  const MatmulConstants& c = chip.laws.matmul;
  const double start_s = chip.seconds(chip.blocks * c.vector_fill_cycles);
  const double memory_s = from_dram(bytes, chip) / chip.dram_bytes_per_s;
  return {start_s + memory_s, c.tiles.front(), start_s, memory_s};
}

/// With one of the units that multiply FP32. `flop_s(tile)`: the least time of a FLOP that the
/// board's power allows.
template <class StepCycles, class FlopSeconds>
LawTime single_precision_on(const ProductSizes& sizes, const SingleKernels& kernels, double bytes,
                            const Chip& chip, const StepCycles& step_cycles,
                            const FlopSeconds& flop_s) {
  const MatmulConstants& c = chip.laws.matmul;
  const BlockCost cost = cost_of(chip.amd ? c.amd_blocks : c.blocks).on(chip);
  const std::span<const double> splits =
      kernels.splits ? std::span<const double>(c.splits) : std::span<const double>(kUnsplit);
  LawTime best{.seconds = kNever};
  for (const Tile tile : kernels.tiles) {
    const Blocks blocks =
        best_blocks(sizes, {&tile, 1}, splits, c.smallest_k_to_split, cost, chip.sms, step_cycles);
    const double compute_s = chip.seconds(blocks.cycles);
    const double flops = 2 * sizes.tiles(tile) * static_cast<double>(tile.m) * tile.n * sizes.k;
    const double memory_s =
        from_dram(bytes, chip) / chip.dram_bytes_per_s + drift_s(sizes, tile, bytes, chip);
    double limit_s = flops * flop_s(tile);
    limit_s *= held_back(std::max(compute_s, limit_s), chip);
    if (std::max(compute_s, limit_s) >= best.seconds) continue;
    const double seconds = single_precision_s(compute_s, memory_s, limit_s);
    if (seconds < best.seconds)
      best = {seconds, tile, 0, memory_s, std::max(compute_s, limit_s), blocks.busy};
  }
  return best;
}

/// Seconds of the operands and results, of which L2 has the share `warm`.
double low_precision_memory_s(double bytes, double warm, const TensorBlocks& c, const Chip& chip) {
  const double cold_s = bytes / chip.dram_bytes_per_s;
  // From CDNA 3 on the ramp is in the cycles in which blocks start.
  const double ramp_us = chip.cdna3 ? 0 : c.ramp_us;
  const double half_us = chip.laws.tensor_matmul.ramp_half_us;
  return cold_s * (1 - warm) +
         std::min(cold_s, bytes / chip.l2_bytes_per_s(c.l2_bytes_per_cycle)) * warm +
         ramp_us * kMicrosecond * bytes /
             (bytes + chip.dram_bytes_per_s * (half_us * kMicrosecond)) * (1 - warm / 2);
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
  const Gemm gemm = gemm_of(kernel);
  const ProductSizes sizes(gemm);
  const SingleKernels kernels = single_kernels(gemm, chip);
  const auto bytes = static_cast<double>(kernel.bytes());
  if (gemm.batched && std::min(gemm.m, gemm.n) == 1 && !chip.amd)
    return matrix_vector_law(bytes, chip);
  const double longer = long_rows(gemm, chip);
  const TileEnergy energy = tile_energy(chip);
  const LawTime lanes = single_precision_on(
      sizes, kernels, bytes, chip,
      [&](Tile tile, double area, double) {
        return kernels.small_tiles ? pascal_step_cycles(chip, tile, area)
                                   : longer * vector_step_cycles(chip, tile, area);
      },
      [&](Tile tile) { return energy_of(energy, tile) / chip.board_power_w; });
  if (chip.gpu.matrix_peak(DType::kFp32) == 0) return lanes;
  // The power that matrix units need for FP32 is not known: it is not taken to limit them.
  const LawTime matrix = single_precision_on(
      sizes, kernels, bytes, chip,
      [&](Tile, double area, double) { return matrix_step_cycles(chip, area); },
      [](Tile) { return 0.0; });
  return matrix.seconds < lanes.seconds ? matrix : lanes;
}

/// Whether NVIDIA's GPU multiplies 16 bits on its FP32 lanes: it has no matrix units, and sums in
/// 32 bits, which frameworks ask for, have no packed instruction.
bool runs_on_fp32_lanes(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  return !chip.amd && chip.gpu.matrix_instruction == MatrixInstruction::kNone &&
         has_16_bits(kernel.compute_dtype()) && !conditions.half_sums;
}

LawTime low_precision_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  if (runs_on_fp32_lanes(kernel, chip, conditions))
    return single_precision_law(kernel, chip, conditions);
  const Gemm gemm = gemm_of(kernel);
  const ProductSizes sizes(gemm);
  const DType dtype = kernel.compute_dtype();
  const TensorMatmulConstants& all = chip.laws.tensor_matmul;
  const TensorBlocks& c = dtype_bits(dtype) >= 2 * kBitsPerByte ? all.of_16_bits : all.of_8_bits;
  const AmdBlocks* amd = amd_blocks(chip);
  const double rate = chip.device.matmul_peak(dtype) * widening_share(chip, dtype, conditions);
  const double limit = unaligned_flops_per_clock(gemm, kernel, chip);
  const bool by_element = limit < kNever && gemm.row_alignment == 1 && has_16_bits(kernel.dtype);
  const double per_clock = std::min(rate / (chip.sms * chip.clock_hz), limit);
  const UnitsPower power(chip, c.hbm_j_per_flop, c.gddr_j_per_flop,
                         per_clock * chip.sms * chip.clock_hz);
  const double conversion = converts_weights(kernel) ? all.conversion_ratio : 1;
  const auto step_cycles = [&](Tile, double area, double busy) {
    const double step = 2 * area / per_clock * conversion;
    return chip.units *
           std::max(step * power.stretch(busy), c.chain_cycles + all.issue_share * step);
  };
  const auto amd_cycles = [&](Tile, double area, double busy) {
    const double smaller = 1 + amd->smaller_ratio * std::max(0.0, perimeter_of(area) - 1);
    const double step = 2 * area / per_clock / amd->reached_share * smaller * conversion;
    return chip.units * step * (1 + amd->power_share * power.share_of_board() * busy);
  };
  const BlockCost block = cost_of(c);
  BlockCost whole_waves = block;
  whole_waves.idle_share = 1;
  const auto blocks = [&](std::span<const Tile> tiles, std::span<const double> splits,
                          const BlockCost& cost) {
    return best_blocks(sizes, tiles, splits, 0, cost.on(chip), chip.sms, step_cycles);
  };
  const Blocks best = chip.cdna3 ? cdna_product_blocks(sizes, kernel, chip)
                      : !traits_of(conditions.software).splits_products
                          ? blocks(all.large_tiles, kUnsplit, whole_waves)
                      : amd != nullptr ? best_blocks(sizes, all.amd_tiles, all.splits, 0,
                                                     cost_of(*amd).on(chip), chip.sms, amd_cycles)
                      : by_element     ? blocks(all.large_tiles, all.splits, block)
                                       : blocks(all.tiles, all.splits, block);
  const auto bytes = static_cast<double>(kernel.bytes());
  const double weight_bytes =
      sizes.batch * sizes.n * sizes.k * static_cast<double>(weight_bits(kernel)) / kBitsPerByte;
  const double warm =
      share_in_l2(conditions, weight_bytes, std::max(0.0, bytes - weight_bytes), chip);
  const double memory_s = low_precision_memory_s(bytes, warm, c, chip);
  const double launch_us = chip.cdna3       ? all.cdna3.launch_us
                           : amd != nullptr ? amd->launch_us
                                            : c.launch_us;
  const double start_s =
      launch_latency_s(launch_us, chip) + measured_quantization_s(sizes, kernel, conditions, chip);
  const double compute_s = chip.seconds(best.cycles);
  return {start_s + root_of_squares(memory_s, compute_s),
          best.tile,
          start_s,
          memory_s,
          compute_s,
          best.busy,
          fused_quantization_s(sizes, kernel, conditions, chip)};
}

}  // namespace tilecast
