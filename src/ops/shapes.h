#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ops/kernel.h"

namespace tilecast {

/// One operator's kernel by its sizes, as measurements and the command line name it.
struct KernelShape {
  int64_t batch = 1;
  int64_t m = 1;         ///< rows
  int64_t n = 1;         ///< columns; elements of a row
  int64_t k = 1;         ///< reduction length; rows of an embedding's table; a head's size
  int64_t heads = 8;     ///< of attention
  int64_t kv_heads = 0;  ///< 0: as many as heads
  int64_t window = 0;    ///< of attention; 0: all keys
  bool causal = false;
  std::optional<DType> kv_dtype;  ///< of keys and values; default: as the queries
  Scheme scheme = Scheme::kNone;  ///< of quantized_linear and experts
  int64_t experts = 8;            ///< of a layer of experts
  int64_t chosen = 2;             ///< experts that a token goes to
  int64_t ranks = 1;              ///< that share experts; of a collective
  int64_t skew_percent = 0;       ///< see expert_load.h
  int64_t window_size = 3;        ///< rows of a convolution's window
  int64_t window_width = 0;       ///< its columns; 0: as many as rows
  int64_t image_width = 0;        ///< columns of a convolution's images; 0: as many as rows (n)
  int64_t stride = 1;
  std::optional<int64_t> padding;  ///< default: half the window
  int64_t groups = 1;              ///< of a convolution's channels
  bool gated = true;               ///< experts have a gate beside the up projection
};

/// Kernels that the operator launches: linear [m,k]·[k,n] + bias, matmul batch·[m,k]·[k,n],
/// quantized_linear as linear, attention of m queries to n keys of `heads` heads of k, experts m
/// tokens of k through inner layers of n, conv2d batch images of n x n pixels from k channels to m,
/// embedding m rows of n from a table of k, reductions from
/// [m,n] to [m,1], all others on [m,n]. Throws Error{kNotFound} for an unknown operator,
/// Error{kInput} for sizes that are not positive or do not fit each other, Error{kUnsupported} for
/// an operator that launches nothing.
std::vector<Kernel> kernels_of_shape(std::string_view op, DType dtype, const KernelShape& shape);

}  // namespace tilecast
