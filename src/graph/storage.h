#pragma once

// How a checkpoint stores the weights of a quantized layer, byte by byte. A scheme (scheme.h) says
// how weights are multiplied and fixes usual sizes of groups; checkpoints choose their own.

#include <cstdint>
#include <map>

#include "graph/scheme.h"

namespace tilecast {

/// Storage of a weight matrix [rows, columns]; columns are the inputs. All sizes in bits.
struct WeightStorage {
  int64_t weight_bits = 0;    ///< of one weight
  int64_t block_rows = 1;     ///< weights of block_rows x block_columns share scales
  int64_t block_columns = 0;  ///< 0: whole rows
  int64_t block_bits = 0;     ///< scales and zero points of a block
  int64_t outer_blocks = 0;   ///< blocks whose scales share a scale of their own; 0: none
  int64_t outer_bits = 0;     ///< that scale
  int64_t row_bits = 0;       ///< for each row: scales of output channels
  int64_t column_bits = 0;    ///< for each column: the group of each input (GPTQ's g_idx)
  int64_t matrix_bits = 0;    ///< for each matrix: global scales, code tables

  bool operator==(const WeightStorage&) const = default;
};

/// The storage of each scheme of a checkpoint that is not the scheme's own.
using StorageTable = std::map<QuantScheme, WeightStorage>;

/// Bytes of a matrix with its scales. Throws Error{kInput} on overflow.
int64_t stored_bytes(const WeightStorage& storage, int64_t rows, int64_t columns);

}  // namespace tilecast
