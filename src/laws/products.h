#pragma once

// Constants of the laws of matrix products (src/predict/law_matmul.cc), and of the FP32 lanes that
// run them. What each is and how it was found: data/laws.

#include <cstdint>
#include <vector>

#include "laws/tile.h"

namespace tilecast {

class ConstantTable;

/// FP32 lanes: cycles of a step of k of a tile, and energy of a FLOP.
struct LaneConstants {
  double reached_share, loop_cycles, other_per_fma_ratio, loads_per_fma_ratio,
      dual_issue_per_fma_ratio, perimeter_ratio, unknown_process_nm, old_process_nm,
      old_process_j_per_flop, new_process_j_per_flop;

  void describe(ConstantTable& table);
  bool operator==(const LaneConstants&) const = default;
};

/// Blocks of kernels in FP32.
struct SplitBlocks {
  double fill_cycles, split_in_two_cycles, element_cycles, idle_share, shortest_k;

  void describe(ConstantTable& table);
  bool operator==(const SplitBlocks&) const = default;
};

/// Energy of a FLOP of a tile on FP32 lanes, where the power of the board counts.
struct TileEnergy {
  double j_per_flop, j_per_byte;

  void describe(ConstantTable& table);
  bool operator==(const TileEnergy&) const = default;
};

/// Operands that the L2 of Pascal loses before all blocks that share them have read them: the
/// blocks of a long k drift apart, the more of them have run the further; then each block reads
/// its rows from DRAM, 32 bytes of a row at a time.
struct PascalDrift {
  double steps_of_k, results, results_exponent, reference_l2_bytes, dram_share;

  void describe(ConstantTable& table);
  bool operator==(const PascalDrift&) const = default;
};

/// Linear layers of long k, from Volta to Ampere.
struct LongRows {
  double added_ratio, from_k, to_k;

  void describe(ConstantTable& table);
  bool operator==(const LongRows&) const = default;
};

/// The limit of the power of a board holds for a mean over milliseconds: other kernels that
/// need less power come in between.
struct PowerInTime {
  double shortest_share, from_s, to_s;

  void describe(ConstantTable& table);
  bool operator==(const PowerInTime&) const = default;
};

/// Matrix products in FP32.
struct MatmulConstants {
  std::vector<Tile> tiles;
  std::vector<double> splits;
  std::vector<Tile> batched_pascal_tiles, batched_volta_tiles, batched_ampere_tiles,
      linear_pascal_tiles;
  double smallest_k_to_split;
  SplitBlocks blocks, amd_blocks;
  double vector_fill_cycles;
  TileEnergy new_process_energy, cool_energy, warm_energy;
  double warm_process_nm, matrix_reached_share, matrix_loop_cycles, pascal_square_fmas_per_cycle,
      pascal_long_fmas_per_cycle, least_dram_share, all_in_l2_ratio, none_in_l2_ratio;
  PascalDrift drift;
  LongRows long_rows;
  PowerInTime power;

  void describe(ConstantTable& table);
  bool operator==(const MatmulConstants&) const = default;
};

/// Products of one precision.
struct TensorBlocks {
  double fill_cycles, split_cycles, element_cycles, idle_share, shortest_k, launch_us, chain_cycles,
      ramp_us, l2_bytes_per_cycle, hbm_j_per_flop, gddr_j_per_flop;

  void describe(ConstantTable& table);
  bool operator==(const TensorBlocks&) const = default;
};

/// Kernels of rocBLAS.
struct AmdBlocks {
  double fill_cycles, split_cycles, split_in_two_cycles, element_cycles, idle_share, shortest_k,
      latency_cycles, reached_share, smaller_ratio, launch_us, power_share;

  void describe(ConstantTable& table);
  bool operator==(const AmdBlocks&) const = default;
};

/// Kernels of AITER and hipBLASLt, from CDNA 3 on.
struct CdnaBlocks {
  std::vector<Tile> tiles;
  double most_block_scaled_elements, fill_cycles, split_cycles, element_cycles, idle_share,
      shortest_k, latency_cycles, block_scaled_latency_cycles, feed_bytes_per_cycle, launch_us,
      of_16_bits_j_per_flop, of_8_bits_j_per_flop, of_4_bits_j_per_flop, reference_process_nm;

  void describe(ConstantTable& table);
  bool operator==(const CdnaBlocks&) const = default;
};

/// Launches that quantize activations before a product.
struct QuantizationLaunches {
  double all_in_l2_ratio, none_in_l2_ratio, l2_bytes_per_cycle;

  void describe(ConstantTable& table);
  bool operator==(const QuantizationLaunches&) const = default;
};

/// Matrix products in lower precision, on matrix units.
struct TensorMatmulConstants {
  std::vector<Tile> tiles;
  std::vector<double> splits;
  std::vector<Tile> large_tiles, amd_tiles;
  TensorBlocks of_16_bits, of_8_bits;
  double issue_share, ramp_half_us;
  AmdBlocks packed_lanes, matrix_cores;
  CdnaBlocks cdna3;
  double gcn5_widening_share, element_flops_per_cycle, word_flops_per_cycle;
  int64_t aligned_16_bit_elements, aligned_tf32_elements;
  double l2_fit_ratio, l2_fit_span_ratio;
  QuantizationLaunches quantization;
  double conversion_ratio;

  void describe(ConstantTable& table);
  bool operator==(const TensorMatmulConstants&) const = default;
};

}  // namespace tilecast
