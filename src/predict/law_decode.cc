// Law of fused attention of one query to a cache. research/law_study.md gives the fit.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/checked.h"
#include "predict/law.h"
#include "predict/law_attention.h"

namespace tilecast {
namespace {

/// Whether so many heads on a key head are left to kernels without packed heads: a block for each
/// query head, which reads its keys one after the other.
bool has_fallback(const Attention& a, const Conditions& conditions) {
  const int64_t most = traits_of(conditions.software).most_packed_decode_heads;
  return most > 0 && !a.latent && a.heads > most * a.kv_heads;
}

/// Cycles per sequence and key head of a decode kernel, of an SM: the start of a block, by family
/// of kernels and query heads per key head.
double block_cycles(const Attention& a, const Chip& chip, const Conditions& conditions) {
  const DecodeConstants& c = chip.laws.decode_attention;
  if (a.latent) return c.latent_block_cycles;
  const int64_t group = std::max<int64_t>(1, a.heads / a.kv_heads);
  if (chip.gpu.matrix_instruction == MatrixInstruction::kTcgen05)
    return c.tcgen05.block_cycles * (group <= c.tcgen05.few_heads    ? 1
                                     : group <= c.tcgen05.more_heads ? c.tcgen05.more_heads_ratio
                                                                     : c.tcgen05.most_heads_ratio);
  if (traits_of(conditions.software).compiles_decode_by_heads)
    return group <= 1                         ? c.compiled.single_block_cycles
           : group <= c.compiled.packed_heads ? c.compiled.packed_block_cycles
                                              : c.compiled.most_block_cycles;
  return c.flash_block_cycles * static_cast<double>(ceil_divide(group, c.flash_heads_of_block));
}

/// Cycles of the blocks of an SM beside the bytes that they read.
double blocks_cycles(const Attention& a, double keys, const Chip& chip,
                     const Conditions& conditions) {
  const DecodeConstants& c = chip.laws.decode_attention;
  if (!has_fallback(a, conditions)) {
    const double sequences = static_cast<double>(a.batch) * static_cast<double>(a.kv_heads);
    return block_cycles(a, chip, conditions) * std::max(0.0, sequences / chip.sms - c.free_blocks);
  }
  const double blocks = static_cast<double>(a.batch) * static_cast<double>(a.heads) / chip.sms;
  return c.compiled.fallback_block_cycles * std::max(0.0, blocks - c.free_blocks) +
         c.compiled.fallback_element_cycles * keys * static_cast<double>(a.head_dim) *
             std::max(1.0, blocks);
}

/// Cycles from the launch of a decode kernel to its end beside its work.
double latency_cycles(const Chip& chip, const Conditions& conditions) {
  return chip.gpu.matrix_instruction == MatrixInstruction::kTcgen05
             ? chip.laws.decode_attention.tcgen05.latency_cycles
             : traits_of(conditions.software).decode_latency_cycles;
}

const DecodeIntake& intake_of(const Chip& chip) {
  switch (chip.gpu.matrix_instruction) {
    case MatrixInstruction::kTcgen05:
    case MatrixInstruction::kWgmma:
      return chip.laws.decode_attention.bulk_intake;
    default:
      return chip.laws.decode_attention.thread_intake;
  }
}

}  // namespace

LawTime decode_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const DecodeConstants& c = chip.laws.decode_attention;
  const auto& a = std::get<Attention>(kernel.shape);
  const SoftwareTraits& software = traits_of(conditions.software);
  const auto bytes = static_cast<double>(kernel.bytes());
  const DecodeIntake& intake = intake_of(chip);
  const double keys = static_cast<double>(a.window > 0 ? std::min(a.window, a.keys) : a.keys);
  const double warm = conditions.caches == Caches::kCold
                          ? 0
                          : ramp(c.l2_fit_ratio - bytes / chip.l2_bytes, 0, c.l2_fit_span_ratio);
  const double dram = c.dram_ratio * chip.dram_bytes_per_s;
  const double memory_s = bytes / dram * (1 - warm);
  // An SM takes in so many 16-bit elements per clock. Kernels that multiply in 16 bits convert an
  // 8-bit cache first and gain nothing by its size.
  const double own_bytes = element_bytes(a.kv_dtype);
  const bool native =
      chip.gpu.matrix_instruction == MatrixInstruction::kTcgen05 || software.multiplies_8bit_cache;
  const double as_if_bytes = native || own_bytes > 1 ? own_bytes : intake.converted_bytes;
  const double l2_s =
      bytes * as_if_bytes / own_bytes / chip.l2_bytes_per_s(intake.sm_bytes_per_cycle);
  // The keys of one block, one after the other. The reads of all blocks of an SM count above.
  // Triton cuts long sequences in few parts, and each takes longer.
  const bool triton = is_triton(a, chip, conditions);
  const double own_keys = std::max(std::min(keys, intake.fewest_keys),
                                   triton ? c.triton_key_ratio * keys / c.triton_parts : 0.0);
  const double key_bytes =
      static_cast<double>(a.latent ? a.head_dim : a.head_dim + a.v_head_dim) * as_if_bytes;
  const double chain_s = chip.seconds(chip.units * own_keys * key_bytes / c.block_bytes_per_cycle);
  const double blocks_s = chip.seconds(chip.blocks * blocks_cycles(a, keys, chip, conditions));
  // Many query heads on one latent vector per key keep the matrix units busy.
  const double compute_s = a.latent ? chip.units * c.latent_products_ratio *
                                          static_cast<double>(kernel.flops) /
                                          chip.device.matmul_peak(kernel.dtype)
                                    : 0;
  const double p = c.overlap_exponent;
  double body_s = std::pow(std::pow(std::max(memory_s, l2_s), p) + std::pow(chain_s, p) +
                               std::pow(blocks_s, p) + std::pow(compute_s, p),
                           1 / p);
  if (a.window > 0 && has_mma_sync(chip)) body_s *= software.windowed_decode_ratio;
  const double start_s = chip.seconds(chip.start * latency_cycles(chip, conditions));
  return {start_s + body_s,
          {},
          start_s,
          std::max(memory_s, l2_s),
          std::max({chain_s, blocks_s, compute_s})};
}

}  // namespace tilecast
