#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "request.h"

namespace tilecast::measure {

/// Bytes of an element: fp32, tf32, fp16, bf16, fp8, int8, int32, int64. Throws Unsupported.
int64_t dtype_bytes(const std::string& dtype);

/// One tensor of an operation. Inputs hold random numbers in [-1, 1], never zeros: zeros draw less
/// power and so run faster than real data.
struct Region {
  std::string dtype;
  int64_t count = 0;
  bool output = false;
  std::vector<int64_t> ids;  ///< where not empty: the content, of dtype int64

  int64_t bytes() const { return count * dtype_bytes(dtype); }
};

/// Addresses of an operation's regions, in their order.
using Operands = std::vector<void*>;

/// Something to time: what it needs and how to launch it once.
struct Operation {
  std::vector<Region> regions;
  std::function<void(const Operands&, cudaStream_t)> launch;
  /// The last region computed by the definition from the inputs, in order; empty where no check.
  std::function<std::vector<double>(const std::vector<std::vector<double>>& inputs)> reference;
  double tolerance = 0;  ///< of |found - reference| / max |reference|
  Fields facts;          ///< what the library chose, for the CSV
};

}  // namespace tilecast::measure
