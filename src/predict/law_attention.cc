// Law of fused attention of prompts and encoders (FlashAttention and its like).
// research/law_study.md gives the fit.

#include "predict/law_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/checked.h"
#include "predict/law.h"

namespace tilecast {

bool has_mma_sync(const Chip& chip) {
  return chip.gpu.matrix_instruction == MatrixInstruction::kMmaSync;
}

bool is_triton(const Attention& a, const Chip& chip, const Conditions& conditions) {
  if (a.latent || !traits_of(conditions.software).falls_back_to_triton) return false;
  const AttentionConstants& c = chip.laws.attention;
  switch (chip.gpu.matrix_instruction) {
    case MatrixInstruction::kWgmma:
      return a.head_dim >= c.triton_wgmma_head_dim ||
             (a.head_dim >= c.triton_wgmma_windowed_head_dim && a.window > 0);
    case MatrixInstruction::kTcgen05:
      return a.head_dim == c.triton_tcgen05_head_dim && a.v_head_dim == c.triton_tcgen05_head_dim;
    default:
      return false;
  }
}

namespace {

double up_to(double x, double step) { return step * std::ceil(x / step); }

/// How a kernel's queries are cut into blocks.
struct QueryBlocks {
  double tiles;      ///< of all sequences and heads
  double rows;       ///< (query, head) pairs of one tile that are computed
  double positions;  ///< query positions in one tile
  double of_head;    ///< tiles one after the other along the queries
};

/// Whether query heads that share a key head also share a tile. FlashInfer and FlashAttention 3 and
/// 4 do, FlashAttention 2 (kernels with mma.sync), TensorRT-LLM's kernels and those for tcgen05
/// (trtllm-gen in all software) do not. With one query FlashAttention 2 does too, and of those for
/// tcgen05 vLLM's alone.
bool packs_heads(const Attention& a, const Chip& chip, const Conditions& conditions) {
  const MatrixInstruction instruction = chip.gpu.matrix_instruction;
  const SoftwareTraits& traits = traits_of(conditions.software);
  if (instruction == MatrixInstruction::kTcgen05)
    return a.queries == 1 && traits.packs_decode_heads_with_tcgen05;
  if (a.queries == 1 && traits.runs_flash_attention_2) return true;
  // FlashAttention 2 reads no cache of 8 bits: software that has it takes FlashInfer there.
  if (has_mma_sync(chip))
    return traits.packs_heads_with_mma_sync ||
           (traits.runs_flash_attention_2 && has_8_bits_or_less(a.kv_dtype));
  return instruction == MatrixInstruction::kWgmma && traits.packs_heads_with_wgmma;
}

/// A block of FlashAttention 2, which needs compute capability 8, in causal attention, on SMs that
/// have the memory for one such block alone. Where two fit, they share the SM as one block of twice
/// the queries would.
bool fills_sm(const Attention& a, const Chip& chip, const Conditions& conditions) {
  return has_mma_sync(chip) && chip.gpu.architecture >= Architecture::kAmpere &&
         chip.gpu.on_chip_bytes_per_sm <= chip.laws.attention.square_tile_on_chip_bytes &&
         traits_of(conditions.software).runs_flash_attention_2 && a.causal && !a.backward &&
         !a.latent && !has_8_bits_or_less(a.kv_dtype);
}

struct AttentionTile {
  int64_t queries;
  double keys;
};

/// Tile of a block. FlashAttention 2 takes few queries where keys lie in pages, and square tiles on
/// GPUs of compute capability 8 whose SMs have little memory, for heads of middle size.
AttentionTile tile_of(const Attention& a, const Chip& chip, const Conditions& conditions) {
  const AttentionConstants& c = chip.laws.attention;
  const AttentionTile usual{c.query_tile, c.key_tile};
  if (!fills_sm(a, chip, conditions)) return usual;
  if (traits_of(conditions.software).pages_prompts && a.head_dim <= c.paged_most_head_dim) {
    const int64_t head = std::max(a.head_dim, c.paged_least_head_dim);
    const auto kernel_head = static_cast<double>(std::bit_ceil(static_cast<uint64_t>(head)));
    return {c.paged_query_tile, c.paged_key_elements / kernel_head};
  }
  const Architecture architecture = chip.gpu.architecture;
  const bool square =
      (architecture == Architecture::kAmpere || architecture == Architecture::kAda) &&
      a.head_dim > c.square_tile_above_head_dim && a.head_dim <= c.square_tile_most_head_dim;
  return square ? AttentionTile{c.square_tile, c.key_tile} : usual;
}

QueryBlocks blocks_of(const Attention& a, bool packs, int64_t tile, const AttentionConstants& c) {
  const int64_t few = std::min(c.few_query_tile, tile);
  const auto cut = [&](int64_t rows, double heads, double rows_per_position) {
    const auto of_head = static_cast<double>(ceil_divide(rows, tile));
    return QueryBlocks{.tiles = static_cast<double>(a.batch) * heads * of_head,
                       .rows = static_cast<double>(rows <= few ? few : tile),
                       .positions = std::min(static_cast<double>(a.queries),
                                             static_cast<double>(tile) / rows_per_position),
                       .of_head = of_head};
  };
  const QueryBlocks plain = cut(a.queries, static_cast<double>(a.heads), 1);
  const int64_t group = std::max<int64_t>(1, a.heads / a.kv_heads);
  if (!packs || group == 1) return plain;
  const QueryBlocks packed =
      cut(a.queries * group, static_cast<double>(a.kv_heads), static_cast<double>(group));
  return packed.tiles < plain.tiles ? packed : plain;
}

/// Mean number of keys that a tile computes, half of it rounded up to whole key tiles.
double mean_keys(const Attention& a, double positions, double key_tile) {
  const auto keys = static_cast<double>(a.keys), queries = static_cast<double>(a.queries);
  double mean = keys;
  if (a.causal) mean = std::min(keys, keys - queries + (queries + positions) / 2);
  if (a.window > 0 && a.window < a.keys) {
    const auto window = static_cast<double>(a.window);
    // The first queries see fewer keys, if fewer than a window are in the cache.
    const double ramp = std::max(0.0, window - (keys - queries));
    mean = std::min(mean, positions + window - ramp * ramp / (2 * queries));
  }
  return 0.5 * up_to(mean, key_tile) + 0.5 * (mean + key_tile / 2);
}

/// Keys of the tile that sees most.
double most_keys(const Attention& a, double positions, double key_tile) {
  const auto keys = static_cast<double>(a.keys);
  const double seen = a.window > 0 && a.window < a.keys
                          ? std::min(keys, static_cast<double>(a.window) + positions)
                          : keys;
  return up_to(seen, key_tile);
}

/// FLOP per clock and SM for the type that is multiplied.
double flop_per_clock(const Kernel& kernel, const Chip& chip) {
  return chip.device.matmul_peak(kernel.dtype) / (chip.sms * chip.clock_hz);
}

/// Whether FlashAttention 2, whose kernels have mma.sync alone, runs beside newer instructions.
bool is_plain_on_newer(const Chip& chip, const SoftwareTraits& traits) {
  switch (chip.gpu.matrix_instruction) {
    case MatrixInstruction::kWgmma:
      return traits.wgmma_attention_ratio > 1;
    case MatrixInstruction::kTcgen05:
      return traits.tcgen05_attention_ratio > 1;
    default:
      return false;
  }
}

/// Elements of a head that a kernel computes: kernels are compiled for some head sizes.
double padded_head(int64_t head_dim, const Chip& chip, const SoftwareTraits& traits) {
  const AttentionConstants& c = chip.laws.attention;
  const auto size = static_cast<double>(head_dim);
  const double step =
      static_cast<double>(head_dim > c.wide_head_dim ? c.wide_head_step : c.head_step);
  switch (chip.gpu.matrix_instruction) {
    case MatrixInstruction::kMmaSync:
      return up_to(size, step);
    case MatrixInstruction::kWgmma:
      if (traits.rounds_heads_with_wgmma && head_dim <= c.wide_head_dim)
        return static_cast<double>(std::bit_ceil(static_cast<uint64_t>(head_dim)));
      return up_to(size, step);
    case MatrixInstruction::kTcgen05:
      return up_to(
          size, is_plain_on_newer(chip, traits) ? step : static_cast<double>(c.tcgen05_head_step));
    default:
      return size;
  }
}

/// Clock cycles that an SM takes for a pair of query and key: products, exponential, other work on
/// the FP32 lanes. `busy` is the share of the SMs that have a tile.
double cycles_per_pair(const Kernel& kernel, const Attention& a, const Chip& chip,
                       const Conditions& conditions, double busy) {
  constexpr double kFlops = 4;  // of a pair and an element of a head
  const AttentionConstants& c = chip.laws.attention;
  const UnitsPower power(chip, c.hbm_j_per_flop, c.gddr_j_per_flop,
                         chip.device.matmul_peak(kernel.dtype));
  const double lanes = chip.gpu.vector_peak(DType::kFp32) / (2 * chip.sms * chip.clock_hz);
  const SoftwareTraits& traits = traits_of(conditions.software);
  const double head =
      (padded_head(a.head_dim, chip, traits) + padded_head(a.v_head_dim, chip, traits)) / 2;
  const double conversion = has_8_bits_or_less(kernel.dtype) ? c.conversion_instructions : 0;
  double cycles = c.products_ratio * kFlops * head / flop_per_clock(kernel, chip) *
                      power.stretch(busy) *
                      (a.head_dim >= c.large_head_dim ? c.large_head_ratio : 1) +
                  c.exponential_ratio / chip.gpu.exp_per_clock_per_sm +
                  (c.other_instructions + conversion) / lanes;
  cycles *= traits.prefill_cycles_ratio;
  if (chip.gpu.matrix_instruction == MatrixInstruction::kWgmma)
    cycles *= a.backward ? traits.wgmma_attention_backward_ratio : traits.wgmma_attention_ratio;
  if (chip.gpu.matrix_instruction == MatrixInstruction::kTcgen05)
    cycles *= traits.tcgen05_attention_ratio;
  if (is_triton(a, chip, conditions)) cycles *= c.triton_ratio;
  return chip.units * (a.backward ? c.backward_ratio * cycles : cycles);
}

/// Factor on the time of the operands' bytes: what fits into L2 comes from there.
double share_of_dram_time(double bytes, const Chip& chip, const Conditions& conditions) {
  if (conditions.caches == Caches::kCold) return 1;
  const AttentionConstants& c = chip.laws.attention;
  const double fits = ramp(c.l2_fit_ratio - bytes / chip.l2_bytes, 0, c.l2_fit_span_ratio);
  const double l2 = chip.l2_bytes_per_s(c.l2_bytes_per_cycle);
  return 1 - fits * (1 - std::min(1.0, chip.dram_bytes_per_s / l2));
}

/// How alike the keys are that blocks see: 1 where all see as many (one tile of queries, no causal
/// mask, or a long prefix), 0 where they see half of the longest on average, as in a long prompt of
/// its own. Of whole tiles: it changes with their number alone. Keys beyond a window do not count.
double evenness(const Attention& a, const QueryBlocks& blocks) {
  constexpr double kHalf = 0.5;
  if (!a.causal) return 1;
  const double queries = blocks.of_head * blocks.positions;
  auto past = static_cast<double>(a.keys - a.queries);
  if (a.window > 0) past = std::min(past, std::max(0.0, static_cast<double>(a.window) - queries));
  return ramp((past + (queries + blocks.positions) / 2) / (past + queries), kHalf, 1);
}

/// Cycles of all blocks on the SMs.
double prefill_blocks_cycles(const Kernel& kernel, const Attention& a, const Chip& chip,
                             const Conditions& conditions) {
  const AttentionConstants& c = chip.laws.attention;
  const AttentionTile tile = tile_of(a, chip, conditions);
  const QueryBlocks blocks = blocks_of(a, packs_heads(a, chip, conditions), tile.queries, c);
  const double waves = blocks.tiles / chip.sms;
  const double cycles = cycles_per_pair(kernel, a, chip, conditions, std::min(1.0, waves));
  // The last block runs alone, within the power of the board.
  const double alone =
      chip.hbm ? cycles : cycles_per_pair(kernel, a, chip, conditions, 1 / chip.sms);
  const double start =
      chip.blocks * c.tile_cycles *
      (has_mma_sync(chip) ? traits_of(conditions.software).mma_sync_start_ratio : 1);
  const double mean = mean_keys(a, blocks.positions, tile.keys);
  const double most = most_keys(a, blocks.positions, tile.keys);
  const double work = waves * (blocks.rows * mean * cycles + start);
  const double longest = blocks.rows * most * alone * c.longest_share + start;
  const double p = c.overlap_exponent;
  const double uneven = std::pow(std::pow(work, p) + std::pow(longest, p), 1 / p);
  if (!has_mma_sync(chip) || a.backward) return uneven;
  // Blocks that see as many keys as the others end together: the SMs take whole waves of them.
  const double whole = std::max(1.0, std::ceil(waves));
  // Beyond a prompt's own keys whole tiles hardly count; without them times only grow.
  Attention own = a;
  own.keys = std::min(a.keys, a.queries);
  const double reach = std::max(most_keys(own, blocks.positions, tile.keys),
                                most_keys(a, blocks.positions, std::min(tile.keys, c.key_tile)));
  const double of_block =
      blocks.rows * reach * cycles_per_pair(kernel, a, chip, conditions, waves / whole) + start;
  return std::lerp(uneven, whole * of_block, evenness(a, blocks));
}

/// Seconds of the kernels beside attention in a call: rotary embedding, which reads and writes the
/// queries in some software, and the write of the cache, which reads 16 bits of each new key and
/// value. The rest of the cache was written before. Encoders have neither. Gradients of queries are
/// summed up in a wider type, which other kernels clear and convert. Where keys are longer than
/// values, they were expanded from latent vectors: the cache holds those, which are short. Only
/// what the keys have more is rotated, in each query and for each head's keys in 16 bits.
double passes_s(const Kernel& kernel, const Attention& a, double dram_time, const Chip& chip,
                const SoftwareTraits& software) {
  if (!a.causal && !a.backward) return 0;
  const double tokens = static_cast<double>(a.batch) * static_cast<double>(a.queries);
  const double query_bytes = tokens * static_cast<double>(a.heads) *
                             static_cast<double>(a.head_dim) * element_bytes(kernel.dtype);
  const double cache_bytes = std::max(0.0, static_cast<double>(kernel.read_bytes) - query_bytes);
  const double own_bytes = element_bytes(a.kv_dtype);
  const double new_bytes = tokens * static_cast<double>(a.kv_heads) *
                           static_cast<double>(a.latent ? a.head_dim : a.head_dim + a.v_head_dim) *
                           own_bytes;
  const double widened = a.latent ? 1 : std::max(1.0, element_bytes(DType::kBf16) / own_bytes);
  const double backward = chip.laws.attention.backward_passes;
  if (!a.latent && !a.backward && a.head_dim > a.v_head_dim) {
    const double rotated = static_cast<double>(a.head_dim - a.v_head_dim);
    const double key_bytes =
        tokens * static_cast<double>(a.kv_heads) * rotated * element_bytes(DType::kBf16);
    return dram_time *
           (software.prefill_query_passes * query_bytes * rotated /
                static_cast<double>(a.head_dim) +
            software.prefill_passes * key_bytes) /
           chip.dram_bytes_per_s;
  }
  const double query_passes = a.backward ? backward : software.prefill_query_passes;
  const double passes = a.backward ? backward : software.prefill_passes * widened;
  return dram_time * (query_passes * query_bytes + passes * std::min(cache_bytes, new_bytes)) /
         chip.dram_bytes_per_s;
}

}  // namespace

LawTime prefill_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const AttentionConstants& c = chip.laws.attention;
  const auto& a = std::get<Attention>(kernel.shape);
  const double body_s = chip.seconds(prefill_blocks_cycles(kernel, a, chip, conditions));
  const auto bytes = static_cast<double>(kernel.bytes());
  const double dram_time = share_of_dram_time(bytes, chip, conditions);
  const double memory_s = dram_time * bytes / chip.dram_bytes_per_s;
  const SoftwareTraits& software = traits_of(conditions.software);
  const double pass_s = passes_s(kernel, a, dram_time, chip, software);
  // Kernels for wgmma and tcgen05 start more slowly: they set up copies by the tensor memory
  // accelerator. With 8 bits, another launch converts queries or the cache.
  const bool plain = chip.gpu.matrix_instruction != MatrixInstruction::kWgmma &&
                     chip.gpu.matrix_instruction != MatrixInstruction::kTcgen05;
  const bool converts = has_8_bits_or_less(kernel.dtype) || has_8_bits_or_less(a.kv_dtype);
  const double launch_us = (plain ? c.plain_launch_us : c.launch_us) + software.prefill_launch_us +
                           (converts ? c.convert_launch_us : 0);
  const double start_s = launch_latency_s(launch_us, chip);
  return {start_s + std::hypot(body_s, memory_s) + pass_s, {}, start_s, memory_s + pass_s, body_s};
}

}  // namespace tilecast
