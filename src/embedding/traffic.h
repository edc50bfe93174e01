#pragma once

// Bytes that the kernels of embedding bags move. Source of the forward pass: Lin et al. 2022,
// "Building a Performance Model for Deep Learning Recommendation Model Training on GPUs" (section
// on embedding lookups), and 2024, "Towards Universal Performance Modeling for Machine Learning
// Training on Multi-GPU Platforms": one warp sums the rows of one bag and moves sectors of 32
// bytes: the table's offset, the bag's offsets, its ids, the rows, the result. Source of the
// backward pass: FBGEMM's table-batched embeddings with an exact optimizer (split_embeddings_
// utils.cu and embedding_backward_split_template.cu): ids are sorted, then each row that the batch
// uses gets the sum of its gradients and is updated once.

#include <cstdint>
#include <string_view>

#include "embedding/reuse.h"

namespace tilecast {

/// How the backward pass treats the rows that were used.
enum class SparseOptimizer : uint8_t {
  kSgd,             ///< no state
  kRowwiseAdagrad,  ///< one number per row (FBGEMM's EXACT_ROWWISE_ADAGRAD)
};
constexpr auto choice_words(SparseOptimizer) {
  return std::array<std::string_view, 2>{"sgd", "rowwise_adagrad"};
}

/// Bytes of optimizer state per row: fp32.
int64_t state_bytes_per_row(SparseOptimizer optimizer);

/// One table, or a part of one, in one batch.
struct TableWork {
  double rows = 1;
  double dim = 1;
  double bags = 1;
  double element_bytes = 4;  ///< of the table
  double result_bytes = 4;   ///< of an element of the result and of its gradient
  TableAccess access;

  double row_bytes() const;     ///< in whole sectors
  double pooled_bytes() const;  ///< of one bag's result, in whole sectors
};

/// Bytes of one kernel, for one table.
struct TableTraffic {
  double read_bytes = 0, write_bytes = 0;
  /// The part of `read_bytes` in rows that are read again and again: L2 may hold them.
  double gathered_bytes = 0;
  double flops = 0;
  TableAccess access;  ///< how the gathered rows repeat
  double row_bytes = 0;
  double streamed_bytes = 0;  ///< per gathered row

  double bytes() const { return read_bytes + write_bytes; }
  /// The part of `gathered_bytes` that an L2 of this size answers.
  double hit_bytes(double cache_bytes) const;
};

TableTraffic forward_traffic(const TableWork& work);
/// Ids in the order of rows, with the bag of each. `key_bits` of the ids are sorted.
TableTraffic sort_traffic(const TableWork& work, int key_bits);
TableTraffic update_traffic(const TableWork& work, SparseOptimizer optimizer);

/// Bits of the ids of tables that have so many rows together.
int key_bits(double rows);

/// Bags that a GPU sums at the same time, one per warp: 108 SMs of 64 warps (A100). With fewer bags
/// per table, several tables share L2. One number for all GPUs, so that work does not depend on the
/// device; it matters for batches below 7,000 only, whose rows are few.
inline constexpr double kBagsAtOnce = 108 * 64;
/// Tables that share L2, of `tables`.
double tables_at_once(double tables, double bags);

}  // namespace tilecast
