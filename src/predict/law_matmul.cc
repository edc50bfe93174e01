// Laws of matrix products. The output is cut into tiles, one block each; k may be split over
// several blocks. Compute is the time of the blocks of one SM, for the tile and the split with
// which it is least.

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "predict/blocks.h"
#include "predict/law.h"

namespace tilecast {
namespace {

// ---- Single precision.

// Rows by columns of the result in row-major order: what cuBLAS calls 128x64, column by column, is
// 64 rows here.
constexpr std::array<Tile, 5> kSingleTiles = {Tile{32, 32}, Tile{32, 64}, Tile{64, 64},
                                              Tile{64, 128}, Tile{128, 128}};
constexpr std::array<double, 4> kSingleSplits = {1, 2, 4, 8};
constexpr std::array<double, 1> kNoSplits = {1};

/// Tiles of cuBLAS's batched routine (CUDA 12.1). It has few kernels for GPUs before Hopper and
/// never splits k. NeuSight's rows name them: on L4 and both A100 ampere_sgemm_128x128 in 23,400 of
/// 23,500 calls, on P4 and P100 maxwell_sgemm_128x64 in all but 150 of 37,600.
constexpr std::array<Tile, 1> kBatchedPascal = {Tile{64, 128}};
constexpr std::array<Tile, 4> kBatchedVolta = {Tile{64, 64}, Tile{32, 128}, Tile{128, 32},
                                               Tile{64, 128}};
constexpr std::array<Tile, 1> kBatchedAmpere = {Tile{128, 128}};

/// Tiles of PyTorch's linear layers on GP100: maxwell_sgemm_32x128 in 3,480 and maxwell_sgemm_64x64
/// in 1,070 of 4,780 calls above 1 ms.
constexpr std::array<Tile, 2> kLinearPascal = {Tile{128, 32}, Tile{64, 64}};

struct SingleKernels {
  std::span<const Tile> tiles = kSingleTiles;
  bool splits = true;
  bool small_tiles = false;  ///< kLinearPascal, which wait for shared memory
};

SingleKernels single_kernels(const Gemm& gemm, const Chip& chip) {
  const Architecture architecture = chip.gpu.architecture;
  // On GP10x cards the files contradict each other: docs/accuracy.md.
  if (!gemm.batched && architecture == Architecture::kPascal && chip.hbm)
    return {kLinearPascal, true, true};
  if (!gemm.batched || chip.amd || architecture >= Architecture::kHopper) return {};
  if (architecture >= Architecture::kAmpere) return {kBatchedAmpere, false};
  if (architecture >= Architecture::kVolta) return {kBatchedVolta, false};
  return {kBatchedPascal, false};
}

/// J of a FLOP of a tile on FP32 lanes, where the board's power limits. Lanes work on whole tiles,
/// padding included. The smaller the tile, the more bytes move for each FLOP.
struct TileEnergy {
  double flop, byte;

  double of(Tile tile) const { return flop + byte * 2 * (1.0 / tile.m + 1.0 / tile.n); }
};

/// Boards at their limit, W * time / (FLOPs of whole tiles), for tiles of 128 x 128, 128 x 64,
/// 64 x 64 and 128 x 32: T4 17.6, 20 to 22, 28 and 28 pJ; P4 18.5 and 22; A100-40 15, 15, 16 and
/// 17.3; L4 8.2, 8.8, - and -. V100, with HBM and 12 nm, is at most at 18.3. GDDR and 10 nm or
/// more: between the two cards.
TileEnergy tile_energy(const Chip& chip) {
  constexpr double kUnknownNm = 5;  // of current data-center GPUs
  const double nm = chip.gpu.process_nm.value_or(kUnknownNm);
  const TileEnergy energy = nm < 6.5              ? TileEnergy{6e-12, 75e-12}
                            : chip.hbm || nm < 10 ? TileEnergy{13.4e-12, 50e-12}
                                                  : TileEnergy{11.1e-12, 225e-12};
  return {chip.energy * energy.flop, chip.energy * energy.byte};
}

/// As vector_step_cycles, on matrix units that multiply FP32 (AMD). They reach 0.65 of their rate:
/// the largest products of MI100 run at 0.71, MI250's at 0.58.
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

/// Constants of the law of low precision, fitted on A100, H100, H200, B200 and L40S
/// (research/law_study.md).
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

/// Constants of rocBLAS's kernels (research/law_study.md). They load through registers and a
/// barrier: the latency of a step of k is hidden by other blocks of the compute unit only, and the
/// results of a tile are written when all its steps are done.
struct AmdConstants {
  BlockCost block;
  double reached;  ///< of the rate, by tiles of 128 x 128 and more
  double smaller;  ///< a tile of a quarter takes so much longer for its area
  double launch_us;
  double power;  ///< whether the board's power counts
};
/// Without matrix units, on packed lanes: MI25, MI60, RX 6800 XT.
constexpr AmdConstants kPackedLanes = {{8000, 22000, 5000, 0.03, 0.5, 16, 30}, 0.83, 0.4, 1.0, 0};
/// MI100, MI250X.
constexpr AmdConstants kMatrixCores = {{12000, 8000, 4000, 0.55, 0.5, 16, 3}, 0.96, 0.4, 2.0, 1};
constexpr std::array<Tile, 8> kAmdTiles = {Tile{16, 16},   Tile{32, 32},  Tile{32, 64},
                                           Tile{64, 64},   Tile{64, 128}, Tile{128, 64},
                                           Tile{128, 128}, Tile{256, 128}};

/// nullptr: not AMD's.
const AmdConstants* amd_constants(const Chip& chip) {
  if (!chip.amd) return nullptr;
  return chip.gpu.matrix_instruction == MatrixInstruction::kNone ? &kPackedLanes : &kMatrixCores;
}

/// Share of the packed rate that 16-bit products with sums in FP32 have. GCN 5 has no packed
/// multiply-add that widens (V_MAD_MIX_F32 is one a lane). MI60 has V_DOT2_F32_F16, but rocBLAS
/// makes little use of it: the median of its large products is 0.38 of the packed rate. RDNA 2
/// reaches 0.94.
double widening_share(const Chip& chip, DType dtype, const Conditions& conditions) {
  const bool slow = chip.gpu.architecture == Architecture::kGcn5 && dtype_bits(dtype) == 16;
  return slow && !conditions.half_sums ? 0.5 : 1;
}

/// FLOPs per clock and SM of products in TF32 and 16 bits whose rows are not all multiples of 16
/// bytes long: no unit copies such rows, so threads load them element by element (below 4 bytes) or
/// word by word. H100's cuBLAS runs CUTLASS kernels for Turing at 85 to 132 TFLOP/s and for Ampere
/// at 194 to 259 then, for rows that differ in one element from ones that run at 800; in TF32, of
/// which a word is one element, at 92 to 133 (data/measurements). All SMs since Volta load 32 words
/// a clock. Infinity for aligned rows, and on AMD's GPUs, where odd rows cost a fifth at most
/// (research/law_study.md).
double unaligned_flops_per_clock(const Gemm& gemm, const Kernel& kernel, const Chip& chip) {
  constexpr double kByElement = 400, kByWord = 900;
  if (kernel.scheme != QuantScheme::kNone || chip.amd) return 1e30;
  if (kernel.compute_dtype() == DType::kTf32) return gemm.row_alignment >= 4 ? 1e30 : kByWord / 2;
  if (dtype_bits(kernel.dtype) != 16 || gemm.row_alignment >= 8) return 1e30;
  return gemm.row_alignment == 1 ? kByElement : kByWord;
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
  return ramp(1.08 - (copies * weight_bytes + other_bytes) / chip.l2_bytes, 0, 0.16);
}

/// Seconds of the launches that quantize the activations before the product.
double quantization_s(const ProductSizes& sizes, const Kernel& kernel, const Conditions& conditions,
                      const Chip& chip) {
  const SoftwareTraits& traits = traits_of(conditions.software);
  const bool quantizes =
      scheme_info(kernel.scheme).compute_dtype.has_value() && traits.quantizes_activations;
  if (!quantizes) return 0;
  // Reads 16 bits and writes 8 of each element; two passes.
  const double bytes = 3 * sizes.batch * sizes.m * sizes.k;
  const double in_l2 = 1 - ramp(bytes / chip.l2_bytes, 0.75, 1.25);
  const double l2 = std::max(chip.l2_bytes_per_s(24), chip.dram_bytes_per_s);
  // Where each token gets a scale: a block for each row, whatever its length.
  const double row_cycles =
      kernel.scheme == QuantScheme::kFp8 ? traits.fp8_scale_cycles_per_row : 0;
  const double rows_s = chip.seconds(chip.blocks * row_cycles * sizes.batch * sizes.m / chip.sms);
  return chip.start * traits.quantization_launches_s + rows_s +
         2 * bytes * ((1 - in_l2) / chip.dram_bytes_per_s + in_l2 / l2);
}

/// Cycles of an SM for one step of k of kLinearPascal. A thread of these kernels holds 16 results
/// or few warps run: beside the lanes, shared memory allows so many FMAs a clock and SM
/// (research/law_study.md).
double pascal_step_cycles(const Chip& chip, Tile tile, double area) {
  const double from_shared = tile.m == tile.n ? 60 : 79;
  return root_of_squares(vector_step_cycles(chip, tile, area), chip.units * area / from_shared);
}

/// Bytes from DRAM: calls one after the other find small operands in L2.
double from_dram(double bytes, const Chip& chip) {
  return bytes * (0.4 + 0.6 * ramp(bytes / chip.l2_bytes, 0.4, 0.6));
}

/// Seconds of the operands that Pascal's L2 loses before all blocks that share them have read them.
/// The blocks of a long k drift apart, the more of them have run the further; then each block reads
/// its rows from DRAM, 32 bytes of a row at a time (research/law_study.md).
double drift_s(const ProductSizes& sizes, Tile tile, double bytes, const Chip& chip) {
  if (chip.gpu.architecture != Architecture::kPascal) return 0;
  constexpr double kSteps = 15800, kResults = 1e6, kL2 = 4 * 1024 * 1024;
  constexpr double kReached = 0.5;  // of the bandwidth of long streams
  const double blocks = sizes.tiles(tile), k = sizes.k / kSteps;
  const double area = static_cast<double>(tile.m) * tile.n;
  const double apart = k * k * std::pow(blocks / sizes.batch * area / kResults, 0.4) *
                       std::sqrt(kL2 / chip.l2_bytes);
  const double read = 4 * blocks * (tile.m + tile.n) * sizes.k;
  // In place of the bytes that count otherwise, so that more of these never take less time.
  const double more = std::max(0.0, read / kReached - from_dram(bytes, chip));
  return apart / (1 + apart) * more / chip.dram_bytes_per_s;
}

/// How much longer the steps of k of linear layers take from rows of about 32,000 elements on, from
/// Volta to Ampere. 256 rows of a tile are then more than the 32 MB that the TLB of an SM covers
/// (V100: 0.96 of its peak up to 33,000, 0.80 from 50,000 on, whatever m and n), and cuBLAS selects
/// its slower `sliced` kernels (A100: 0.90 to 0.78).
double long_rows(const Gemm& gemm, const Chip& chip) {
  const Architecture architecture = chip.gpu.architecture;
  const bool known = architecture >= Architecture::kVolta && architecture <= Architecture::kAmpere;
  if (!known || gemm.batched) return 1;
  return 1 + 0.2 * ramp(static_cast<double>(gemm.k), 30000, 40000);
}

/// Share of the least time that the board's power allows that a kernel of these seconds takes. The
/// limit holds for a mean over milliseconds: others that need less power come in between.
double held_back(double seconds) {
  constexpr double kShortest = 0.7, kFrom = 0.3e-3, kTo = 10e-3;
  return kShortest + (1 - kShortest) * ramp(std::log(seconds / kFrom), 0, std::log(kTo / kFrom));
}

/// Batched products of one row or one column. They were never measured: below Hopper the routine's
/// tiles would multiply 64 to 128 rows of padding, but cuBLAS hands such products to kernels for a
/// matrix and a vector, which read the matrix once. H100's other products of one row do so at 0.82
/// and 0.88 of the DRAM bandwidth (data/measurements, matmul).
LawTime matrix_vector_law(double bytes, const Chip& chip) {
  constexpr double kFill = 5000;
  return {chip.seconds(chip.blocks * kFill) + from_dram(bytes, chip) / chip.dram_bytes_per_s,
          kSingleTiles[0]};
}

/// With one of the units that multiply FP32. `flop_s(tile)`: the least time of a FLOP that the
/// board's power allows.
template <class StepCycles, class FlopSeconds>
LawTime single_precision_on(const ProductSizes& sizes, const SingleKernels& kernels, double bytes,
                            const Chip& chip, const StepCycles& step_cycles,
                            const FlopSeconds& flop_s) {
  constexpr BlockCost kCost = {5000, 0, 3000, 0.1, 1, 16};
  constexpr BlockCost kAmdCost = {5000, 0, 3000, 0.0375, 0.5, 16};
  constexpr double kSplitsFrom = 128;
  const BlockCost cost = (chip.amd ? kAmdCost : kCost).on(chip);
  LawTime best{.seconds = 1e30};
  for (const Tile tile : kernels.tiles) {
    const auto blocks = [&](const auto& splits) {
      return best_blocks(sizes, std::array{tile}, splits, kSplitsFrom, cost, chip.sms, step_cycles);
    };
    const double compute_s =
        chip.seconds((kernels.splits ? blocks(kSingleSplits) : blocks(kNoSplits)).cycles);
    const double flops = 2 * sizes.tiles(tile) * static_cast<double>(tile.m) * tile.n * sizes.k;
    const double memory_s =
        from_dram(bytes, chip) / chip.dram_bytes_per_s + drift_s(sizes, tile, bytes, chip);
    double limit_s = flops * flop_s(tile);
    limit_s *= held_back(std::max(compute_s, limit_s));
    if (std::max(compute_s, limit_s) >= best.seconds) continue;
    const double seconds = single_precision_s(compute_s, memory_s, limit_s);
    if (seconds < best.seconds) best = {seconds, tile};
  }
  return best;
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
      [&](Tile tile) { return energy.of(tile) / chip.board_power_w; });
  if (chip.gpu.matrix_peak(DType::kFp32) == 0) return lanes;
  // The power that matrix units need for FP32 is not known: it is not taken to limit them.
  const LawTime matrix = single_precision_on(
      sizes, kernels, bytes, chip,
      [&](Tile, double area, double) { return matrix_step_cycles(chip, area); },
      [](Tile) { return 0.0; });
  return matrix.seconds < lanes.seconds ? matrix : lanes;
}

LawTime low_precision_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const Gemm gemm = gemm_of(kernel);
  const ProductSizes sizes(gemm);
  const DType dtype = kernel.compute_dtype();
  const TensorConstants& c = dtype_bits(dtype) >= 16 ? k16Bit : k8Bit;
  const AmdConstants* amd = amd_constants(chip);
  const double rate = chip.device.matmul_peak(dtype) * widening_share(chip, dtype, conditions);
  const double limit = unaligned_flops_per_clock(gemm, kernel, chip);
  const bool by_element = limit < 1e30 && gemm.row_alignment == 1 && dtype_bits(kernel.dtype) == 16;
  const double per_clock = std::min(rate / (chip.sms * chip.clock_hz), limit);
  const double power = chip.energy * (chip.hbm ? c.energy_hbm : c.energy_gddr) * per_clock *
                       chip.sms * chip.clock_hz / chip.board_power_w;
  // A step takes so much longer (layers of experts, research/law_study.md).
  const double conversion = converts_weights(kernel) ? 1.5 : 1;
  const auto step_cycles = [&](Tile, double area, double busy) {
    const double step = 2 * area / per_clock * conversion;
    return chip.units * std::max(step * (1 + power * busy), c.chain + 0.1 * step);
  };
  const auto amd_cycles = [&](Tile, double area, double busy) {
    const double perimeter = std::sqrt(128.0 * 128.0 / area);
    const double smaller = 1 + amd->smaller * std::max(0.0, perimeter - 1);
    const double step = 2 * area / per_clock / amd->reached * smaller * conversion;
    return chip.units * step * (1 + amd->power * power * busy);
  };
  BlockCost whole_waves = c.block;
  whole_waves.idle_share = 1;
  const auto blocks = [&](const auto& tiles, const auto& splits, const BlockCost& cost) {
    return best_blocks(sizes, tiles, splits, 0, cost.on(chip), chip.sms, step_cycles);
  };
  const Blocks best = !traits_of(conditions.software).splits_products
                          ? blocks(kLargeTiles, kNoSplits, whole_waves)
                      : amd != nullptr ? best_blocks(sizes, kAmdTiles, kTensorSplits, 0,
                                                     amd->block.on(chip), chip.sms, amd_cycles)
                      : by_element     ? blocks(kLargeTiles, kTensorSplits, c.block)
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
  return {launch_latency_s(amd != nullptr ? amd->launch_us : c.launch_us, chip) +
              quantization_s(sizes, kernel, conditions, chip) +
              root_of_squares(memory_s, chip.seconds(best.cycles)),
          best.tile};
}

}  // namespace tilecast
