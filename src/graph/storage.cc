#include "graph/storage.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"

namespace tilecast {

int64_t stored_bytes(const WeightStorage& s, int64_t rows, int64_t columns) {
  const int64_t across = s.block_columns == 0 ? 1 : ceil_divide(columns, s.block_columns);
  const int64_t blocks =
      checked_multiply(ceil_divide(rows, std::max<int64_t>(1, s.block_rows)), across);
  int64_t bits = checked_product({rows, columns, s.weight_bits});
  const auto add = [&](int64_t more) { bits = checked_add(bits, more); };
  add(checked_multiply(blocks, s.block_bits));
  if (s.outer_blocks > 0) add(checked_multiply(ceil_divide(blocks, s.outer_blocks), s.outer_bits));
  add(checked_multiply(rows, s.row_bits));
  add(checked_multiply(columns, s.column_bits));
  add(s.matrix_bits);
  return ceil_divide(bits, kBitsPerByte);
}

}  // namespace tilecast
