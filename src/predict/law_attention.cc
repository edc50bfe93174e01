// Laws of fused attention (FlashAttention and its like). research/law_study.md gives the fit.

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "predict/law.h"

namespace tilecast {
namespace {

/// Keys that a block loads at a time.
constexpr double kKeyTile = 64;

double up_to(double x, double step) { return step * std::ceil(x / step); }

/// How a kernel's queries are cut into blocks.
struct QueryBlocks {
  double tiles;      ///< of all sequences and heads
  double rows;       ///< (query, head) pairs of one tile that are computed
  double positions;  ///< query positions in one tile
};

/// Whether query heads that share a key head also share a tile. FlashAttention 3 and 4 do,
/// FlashAttention 2 (kernels with mma.sync), TensorRT-LLM's kernels and those for tcgen05
/// (trtllm-gen in all software) do not. With one query all do, but of those for tcgen05 vLLM's
/// alone.
bool packs_heads(const Attention& a, const Chip& chip, const Conditions& conditions) {
  const MatrixInstruction instruction = chip.gpu.matrix_instruction;
  const SoftwareTraits& traits = traits_of(conditions.software);
  if (instruction == MatrixInstruction::kTcgen05)
    return a.queries == 1 && traits.packs_decode_heads_with_tcgen05;
  if (a.queries == 1) return true;
  return instruction == MatrixInstruction::kWgmma && traits.packs_heads_with_wgmma;
}

QueryBlocks blocks_of(const Attention& a, bool packs) {
  constexpr int64_t kRows = 128, kFewRows = 64;
  const auto cut = [&](int64_t rows, double heads, double rows_per_position) {
    return QueryBlocks{.tiles = static_cast<double>(a.batch) * heads *
                                static_cast<double>(ceil_divide(rows, kRows)),
                       .rows = static_cast<double>(rows <= kFewRows ? kFewRows : kRows),
                       .positions = std::min(static_cast<double>(a.queries),
                                             static_cast<double>(kRows) / rows_per_position)};
  };
  const QueryBlocks plain = cut(a.queries, static_cast<double>(a.heads), 1);
  const int64_t group = std::max<int64_t>(1, a.heads / a.kv_heads);
  if (!packs || group == 1) return plain;
  const QueryBlocks packed =
      cut(a.queries * group, static_cast<double>(a.kv_heads), static_cast<double>(group));
  return packed.tiles < plain.tiles ? packed : plain;
}

/// Mean number of keys that a tile computes, half of it rounded up to whole key tiles.
double mean_keys(const Attention& a, double positions) {
  const auto keys = static_cast<double>(a.keys), queries = static_cast<double>(a.queries);
  double mean = keys;
  if (a.causal) mean = std::min(keys, keys - queries + (queries + positions) / 2);
  if (a.window > 0 && a.window < a.keys) {
    const auto window = static_cast<double>(a.window);
    // The first queries see fewer keys, if fewer than a window are in the cache.
    const double ramp = std::max(0.0, window - (keys - queries));
    mean = std::min(mean, positions + window - ramp * ramp / (2 * queries));
  }
  return 0.5 * up_to(mean, kKeyTile) + 0.5 * (mean + kKeyTile / 2);
}

/// Keys of the tile that sees most.
double most_keys(const Attention& a, double positions) {
  const auto keys = static_cast<double>(a.keys);
  const double seen = a.window > 0 && a.window < a.keys
                          ? std::min(keys, static_cast<double>(a.window) + positions)
                          : keys;
  return up_to(seen, kKeyTile);
}

/// Shapes for which software falls back to kernels in Triton (by the column `kernel` of the public
/// measurements).
bool is_triton(const Attention& a, const Chip& chip, const Conditions& conditions) {
  if (!traits_of(conditions.software).falls_back_to_triton) return false;
  switch (chip.gpu.matrix_instruction) {
    case MatrixInstruction::kWgmma:
      return a.head_dim >= 512 || (a.head_dim >= 256 && a.window > 0);
    case MatrixInstruction::kTcgen05:
      return a.head_dim == 192 && a.v_head_dim == 192;
    default:
      return false;
  }
}

/// FLOP per clock and SM for the type that is multiplied.
double flop_per_clock(const Kernel& kernel, const Chip& chip) {
  return chip.device.matmul_peak(kernel.dtype) / (chip.sms * chip.clock_hz);
}

/// Clock cycles that an SM takes for a pair of query and key: products, exponential, other work on
/// the FP32 lanes. `busy` is the share of the SMs that have a tile.
double cycles_per_pair(const Kernel& kernel, const Attention& a, const Chip& chip,
                       const Conditions& conditions, double busy) {
  constexpr double kProducts = 1.25, kExponential = 0.4, kOther = 0.35;
  constexpr double kConvert = 1.1;    // weights of the softmax to 8 bits
  constexpr double kLargeHead = 1.5;  // of 512 and more: the output does not fit registers
  const double energy = chip.energy * (chip.hbm ? 0.02e-12 : 0.28e-12);
  const double power = busy * energy * chip.device.matmul_peak(kernel.dtype) / chip.board_power_w;
  const double lanes = chip.gpu.vector_peak(DType::kFp32) / (2 * chip.sms * chip.clock_hz);
  const double head = static_cast<double>(a.head_dim + a.v_head_dim) / 2;
  double cycles = kProducts * 4 * head / flop_per_clock(kernel, chip) * (1 + power) *
                      (a.head_dim >= 512 ? kLargeHead : 1) +
                  kExponential / chip.gpu.exp_per_clock_per_sm +
                  (kOther + (dtype_bits(kernel.dtype) <= 8 ? kConvert : 0)) * 4 / lanes;
  cycles *= traits_of(conditions.software).prefill_cycles_ratio;
  if (is_triton(a, chip, conditions)) cycles *= 5.3;
  // Backward recomputes the scores: 2.5 times the products of forward.
  return chip.units * (a.backward ? 2.5 * cycles : cycles);
}

/// Factor on the time of the operands' bytes: what fits into L2 comes from there.
double share_of_dram_time(double bytes, const Chip& chip, const Conditions& conditions) {
  if (conditions.caches == Caches::kCold) return 1;
  const double fits = ramp(1.25 - bytes / chip.l2_bytes, 0, 0.5);
  return 1 - fits * (1 - std::min(1.0, chip.dram_bytes_per_s / chip.l2_bytes_per_s(24)));
}

/// Whether so many heads on a key head are left to kernels without packed heads: a block for each
/// query head, which reads its keys one after the other.
bool has_fallback(const Attention& a, const Conditions& conditions) {
  const int64_t most = traits_of(conditions.software).most_packed_decode_heads;
  return most > 0 && !a.latent && a.heads > most * a.kv_heads;
}

/// Cycles per sequence and key head of a decode kernel, of an SM: the start of a block, by family
/// of kernels and query heads per key head.
double block_cycles(const Attention& a, const Chip& chip, const Conditions& conditions) {
  if (a.latent) return 6000;
  const int64_t group = std::max<int64_t>(1, a.heads / a.kv_heads);
  if (chip.gpu.matrix_instruction == MatrixInstruction::kTcgen05)
    return 2250 * (group <= 8 ? 1 : group <= 16 ? 1.3 : 2);  // trtllm-gen in all software
  if (traits_of(conditions.software).compiles_decode_by_heads)
    return group <= 1 ? 2250 : group <= 16 ? 8600 : 13500;
  constexpr int64_t kHeadsOfBlock = 64;
  return 6000 * static_cast<double>(ceil_divide(group, kHeadsOfBlock));  // FlashAttention
}

/// Cycles of the blocks of an SM beside the bytes that they read.
double blocks_cycles(const Attention& a, double keys, const Chip& chip,
                     const Conditions& conditions) {
  if (!has_fallback(a, conditions)) {
    const double sequences = static_cast<double>(a.batch) * static_cast<double>(a.kv_heads);
    return block_cycles(a, chip, conditions) * std::max(0.0, sequences / chip.sms - 0.5);
  }
  // A block starts as in TensorRT-LLM's kernels without shared heads; a key of 128 elements takes
  // 17 to 37 cycles, from A100 to B200 (research/law_study.md).
  constexpr double kStart = 2250, kKey = 20.0 / 128;
  const double blocks = static_cast<double>(a.batch) * static_cast<double>(a.heads) / chip.sms;
  return kStart * std::max(0.0, blocks - 0.5) +
         kKey * keys * static_cast<double>(a.head_dim) * std::max(1.0, blocks);
}

/// Cycles from the launch of a decode kernel to its end beside its work.
double latency_cycles(const Chip& chip, const Conditions& conditions) {
  constexpr double kTcgen05 = 18000;
  return chip.gpu.matrix_instruction == MatrixInstruction::kTcgen05
             ? kTcgen05
             : traits_of(conditions.software).decode_latency_cycles;
}

/// How a decode kernel takes in the cache, by the instruction that copies it: threads of mma.sync
/// kernels wait for their own copies (cp.async). With bulk copies, H200 reaches 18 bytes and B200
/// 25 where DRAM bounds them.
struct Intake {
  double bytes_per_clock;  ///< of an SM with many blocks
  double fewest_keys;      ///< of one block
  double converted_bytes;  ///< that an element of an 8-bit cache counts as if it is converted
};
Intake intake_of(const Chip& chip) {
  switch (chip.gpu.matrix_instruction) {
    case MatrixInstruction::kTcgen05:
    case MatrixInstruction::kWgmma:
      return {24, 256, 2.5};
    default:
      return {10, 512, 1.5};
  }
}

}  // namespace

LawTime prefill_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  constexpr double kLaunchUs = 8.3, kPlainLaunchUs = 4.8, kConvertUs = 3.5;
  constexpr double kTileCycles = 5300, kLongestWeight = 0.5, kP = 0.9;
  const auto& a = std::get<Attention>(kernel.shape);
  const QueryBlocks blocks = blocks_of(a, packs_heads(a, chip, conditions));
  const double cycles =
      cycles_per_pair(kernel, a, chip, conditions, std::min(1.0, blocks.tiles / chip.sms));
  const double pairs = blocks.tiles * blocks.rows * mean_keys(a, blocks.positions);
  const double work = (pairs * cycles + chip.blocks * kTileCycles * blocks.tiles) / chip.sms;
  const double longest = blocks.rows * most_keys(a, blocks.positions) * cycles * kLongestWeight +
                         chip.blocks * kTileCycles;
  const double body_s = chip.seconds(std::pow(std::pow(work, kP) + std::pow(longest, kP), 1 / kP));
  const auto bytes = static_cast<double>(kernel.bytes());
  const double dram_time = share_of_dram_time(bytes, chip, conditions);
  const double memory_s = dram_time * bytes / chip.dram_bytes_per_s;
  const SoftwareTraits& software = traits_of(conditions.software);
  // Queries, and keys and values of the new tokens; the rest of the cache was written before.
  const double query_bytes = static_cast<double>(a.batch) * static_cast<double>(a.queries) *
                             static_cast<double>(a.heads) * static_cast<double>(a.head_dim) *
                             static_cast<double>(dtype_bits(kernel.dtype)) / 8;
  const double cache_bytes = std::max(0.0, static_cast<double>(kernel.read_bytes) - query_bytes);
  const double new_bytes = static_cast<double>(a.batch) * static_cast<double>(a.queries) *
                           static_cast<double>(a.kv_heads) *
                           static_cast<double>(a.latent ? a.head_dim : a.head_dim + a.v_head_dim) *
                           static_cast<double>(dtype_bits(a.kv_dtype)) / 8;
  const double pass_s = software.prefill_passes * dram_time *
                        (query_bytes + std::min(cache_bytes, new_bytes)) / chip.dram_bytes_per_s;
  // Kernels for wgmma and tcgen05 start more slowly: they set up copies by the tensor memory
  // accelerator. With 8 bits, another launch converts queries or the cache.
  const bool plain = chip.gpu.matrix_instruction != MatrixInstruction::kWgmma &&
                     chip.gpu.matrix_instruction != MatrixInstruction::kTcgen05;
  const bool converts = dtype_bits(kernel.dtype) <= 8 || dtype_bits(a.kv_dtype) <= 8;
  const double launch_us = (plain ? kPlainLaunchUs : kLaunchUs) + software.prefill_launch_us +
                           (converts ? kConvertUs : 0);
  return {launch_latency_s(launch_us, chip) + std::hypot(body_s, memory_s) + pass_s};
}

LawTime decode_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  constexpr double kP = 1.5;
  constexpr double kBlockBytesPerClock = 24;  // of one block
  constexpr double kLatentProducts = 1.7;
  const auto& a = std::get<Attention>(kernel.shape);
  const SoftwareTraits& software = traits_of(conditions.software);
  const auto bytes = static_cast<double>(kernel.bytes());
  const Intake intake = intake_of(chip);
  const double keys = static_cast<double>(a.window > 0 ? std::min(a.window, a.keys) : a.keys);
  const double warm =
      conditions.caches == Caches::kCold ? 0 : ramp(1.2 - bytes / chip.l2_bytes, 0, 0.4);
  // Decode streams better than products do.
  const double dram = 1.03 * chip.dram_bytes_per_s;
  const double memory_s = bytes / dram * (1 - warm);
  // An SM takes in so many 16-bit elements per clock. Kernels that multiply in 16 bits convert an
  // 8-bit cache first and gain nothing by its size.
  const double element_bytes = static_cast<double>(dtype_bits(a.kv_dtype)) / 8;
  const bool native =
      chip.gpu.matrix_instruction == MatrixInstruction::kTcgen05 || software.multiplies_8bit_cache;
  const double as_if_bytes = native || element_bytes > 1 ? element_bytes : intake.converted_bytes;
  const double l2_s =
      bytes * as_if_bytes / element_bytes / chip.l2_bytes_per_s(intake.bytes_per_clock);
  // The keys of one block, one after the other. The reads of all blocks of an SM count above.
  // Triton cuts long sequences in few parts, and each takes longer.
  constexpr double kTritonParts = 4, kTritonTime = 1.7;
  const bool triton = !a.latent && is_triton(a, chip, conditions);
  const double own_keys = std::max(std::min(keys, intake.fewest_keys),
                                   triton ? kTritonTime * keys / kTritonParts : 0.0);
  const double key_bytes =
      static_cast<double>(a.latent ? a.head_dim : a.head_dim + a.v_head_dim) * as_if_bytes;
  const double chain_s = chip.seconds(chip.units * own_keys * key_bytes / kBlockBytesPerClock);
  const double blocks_s = chip.seconds(chip.blocks * blocks_cycles(a, keys, chip, conditions));
  // Many query heads on one latent vector per key keep the matrix units busy.
  const double compute_s = a.latent
                               ? chip.units * kLatentProducts * static_cast<double>(kernel.flops) /
                                     chip.device.matmul_peak(kernel.dtype)
                               : 0;
  double body_s = std::pow(std::pow(std::max(memory_s, l2_s), kP) + std::pow(chain_s, kP) +
                               std::pow(blocks_s, kP) + std::pow(compute_s, kP),
                           1 / kP);
  if (a.window > 0 && chip.gpu.matrix_instruction == MatrixInstruction::kMmaSync)
    body_s *= software.windowed_decode_ratio;
  return {chip.seconds(chip.start * latency_cycles(chip, conditions)) + body_s};
}

}  // namespace tilecast
