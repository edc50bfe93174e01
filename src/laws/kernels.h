#pragma once

// Constants of the laws of other kernels (src/predict/law_*.cc). What each is and how it was found:
// data/laws.

#include <cstdint>
#include <vector>

namespace tilecast {

class ConstantTable;

/// Kernels that stream memory: pointwise operators, copies, reductions.
struct StreamConstants {
  double start_s, hbm_dram_share, amd_hbm_dram_share, gddr_dram_share, l2_bytes_per_cycle,
      kept_ratio, kept_part, batch_norm_ratio, batch_norm_cycles;

  void describe(ConstantTable& table);
  bool operator==(const StreamConstants&) const = default;
};

/// What the SMs do for rows, beside moving them.
struct RowCost {
  double row_cycles, element_cycles, start_cycles, chain_cycles;

  void describe(ConstantTable& table);
  bool operator==(const RowCost&) const = default;
};

/// What kernels that move a row by vectors of 16 bytes reach.
struct VectorRowCost {
  double l2_bytes_per_cycle, chain_cycles;

  void describe(ConstantTable& table);
  bool operator==(const VectorRowCost&) const = default;
};

/// Softmax and norms of PyTorch: what the SMs do for their rows, beside moving them.
struct RowsConstants {
  RowCost norm, short_softmax, long_softmax;
  double reference_schedulers;
  int64_t register_columns;
  double columns_per_thread, fewest_threads, most_threads, threads_in_flight, l2_bytes_per_cycle,
      missed_share, softmax_reading_ratio;

  void describe(ConstantTable& table);
  bool operator==(const RowsConstants&) const = default;
};

/// Kernels of serving software with a block for each row, of up to 1024 threads: RMS norms,
/// gated activations, rotary embedding.
struct BlockRowsConstants {
  RowCost norm, gate, rotary;
  double second_reading_bytes_per_cycle;
  VectorRowCost norm_by_vectors, gate_by_vectors, rotary_by_vectors;
  double missed_l2_ratio;

  void describe(ConstantTable& table);
  bool operator==(const BlockRowsConstants&) const = default;
};

/// Chips that no law describes: shares of the data sheet that kernels reach.
struct ClassRooflineConstants {
  double product_share, product_of_8_bits_share, product_memory_share, attention_share,
      attention_of_8_bits_share, cache_share, experts_share, experts_memory_share, vector_share,
      memory_share, start_s, interval_ratio;

  void describe(ConstantTable& table);
  bool operator==(const ClassRooflineConstants&) const = default;
};

/// Marlin's layers of experts: weights of few bits are converted and multiplied by mma.sync.
struct MarlinExperts {
  double mma_flops_per_cycle, reached_ratio, conversion_cycles, activation_passes, least_fill,
      column_multiple, reduction_multiple;
  std::vector<double> tile_rows;

  void describe(ConstantTable& table);
  bool operator==(const MarlinExperts&) const = default;
};

/// Fused layers of experts from CDNA 3 on, beside what they share with products
/// (tensor_matmul.cdna3).
struct CdnaExperts {
  std::vector<double> tile_rows, tile_columns;
  double fill_cycles, element_cycles, conversion_cycles, activation_passes;

  void describe(ConstantTable& table);
  bool operator==(const CdnaExperts&) const = default;
};

/// Fused layers of experts: two grouped products between passes that gather the tokens and add
/// up the results.
struct ExpertsConstants {
  double reached_ratio, conversion_cycles, l2_bytes_per_cycle, activation_passes, fill_cycles,
      element_cycles, idle_share;
  std::vector<double> tile_rows;
  double tile_columns, hbm_j_per_flop, gddr_j_per_flop, l2_fit_ratio, l2_fit_span_ratio,
      dram_time_ratio;
  MarlinExperts marlin;
  CdnaExperts cdna3;

  void describe(ConstantTable& table);
  bool operator==(const ExpertsConstants&) const = default;
};

/// Linear recurrences (gated delta nets, Mamba-2), by kernels that work in chunks of tokens.
struct ScanConstants {
  double step_launch_us, prompt_launch_us, chunk_tokens, chunk_cycles, idle_share, all_in_l2_ratio,
      none_in_l2_ratio, l2_bytes_per_cycle, prompt_passes;

  void describe(ConstantTable& table);
  bool operator==(const ScanConstants&) const = default;
};

/// Embedding bags.
struct EmbeddingBagConstants {
  double l2_bytes_per_cycle, gather_share, row_s, interval_ratio;

  void describe(ConstantTable& table);
  bool operator==(const EmbeddingBagConstants&) const = default;
};

}  // namespace tilecast
