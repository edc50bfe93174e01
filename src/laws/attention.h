#pragma once

// Constants of the laws of fused attention (src/predict/law_attention.cc). What each is and how it
// was found: data/laws.

#include <cstdint>

namespace tilecast {

class ConstantTable;

/// Fused attention of prompts and encoders (FlashAttention and its like).
struct AttentionConstants {
  double key_tile;
  int64_t query_tile, few_query_tile, head_step, wide_head_step, wide_head_dim, tcgen05_head_step,
      square_tile, square_tile_above_head_dim, square_tile_most_head_dim, square_tile_on_chip_bytes,
      paged_query_tile, paged_least_head_dim, paged_most_head_dim;
  double paged_key_elements;
  int64_t triton_wgmma_head_dim, triton_wgmma_windowed_head_dim, triton_tcgen05_head_dim;
  double products_ratio, exponential_ratio, other_instructions, conversion_instructions;
  int64_t large_head_dim;
  double large_head_ratio, hbm_j_per_flop, gddr_j_per_flop, triton_ratio, backward_ratio,
      backward_passes, l2_fit_ratio, l2_fit_span_ratio, l2_bytes_per_cycle, launch_us,
      plain_launch_us, convert_launch_us, tile_cycles, longest_share, overlap_exponent;

  void describe(ConstantTable& table);
  bool operator==(const AttentionConstants&) const = default;
};

/// Kernels for tcgen05 (trtllm-gen in all software).
struct Tcgen05Decode {
  double block_cycles;
  int64_t few_heads, more_heads;
  double more_heads_ratio, most_heads_ratio, latency_cycles;

  void describe(ConstantTable& table);
  bool operator==(const Tcgen05Decode&) const = default;
};

/// Kernels that are compiled for query heads on a key head (TensorRT-LLM).
struct CompiledDecode {
  double single_block_cycles, packed_block_cycles;
  int64_t packed_heads;
  double most_block_cycles, fallback_block_cycles, fallback_element_cycles;

  void describe(ConstantTable& table);
  bool operator==(const CompiledDecode&) const = default;
};

/// How a decode kernel takes in the cache, by the instruction that copies it.
struct DecodeIntake {
  double sm_bytes_per_cycle, fewest_keys, converted_bytes;

  void describe(ConstantTable& table);
  bool operator==(const DecodeIntake&) const = default;
};

/// Fused attention of one query per sequence.
struct DecodeConstants {
  Tcgen05Decode tcgen05;
  CompiledDecode compiled;
  double latent_block_cycles, flash_block_cycles;
  int64_t flash_heads_of_block;
  double free_blocks;
  DecodeIntake bulk_intake, thread_intake;
  double overlap_exponent, block_bytes_per_cycle, latent_products_ratio, l2_fit_ratio,
      l2_fit_span_ratio, dram_ratio, triton_parts, triton_key_ratio;

  void describe(ConstantTable& table);
  bool operator==(const DecodeConstants&) const = default;
};

}  // namespace tilecast
