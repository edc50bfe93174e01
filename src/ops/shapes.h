#pragma once

#include <string_view>
#include <vector>

#include "ops/kernel.h"

namespace tilecast {

/// One operator's kernel by its sizes, as measurements and the command line name it.
struct KernelShape {
  int64_t batch = 1;
  int64_t m = 1;  ///< rows
  int64_t n = 1;  ///< columns; elements of a row
  int64_t k = 1;  ///< reduction length; rows of an embedding's table
};

/// Kernels that the operator launches: linear [m,k]·[k,n] + bias, matmul batch·[m,k]·[k,n],
/// embedding m rows of n from a table of k, reductions from [m,n] to [m,1], all others on [m,n].
/// Throws Error{kNotFound} for an unknown operator, Error{kInput} for sizes that do not fit,
/// Error{kUnsupported} for an operator that launches nothing.
std::vector<Kernel> kernels_of_shape(std::string_view op, DType dtype, const KernelShape& shape);

}  // namespace tilecast
