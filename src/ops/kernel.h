#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"
#include "graph/graph.h"

namespace tilecast {

/// Which law forecasts a kernel.
enum class KernelFamily : uint8_t {
  kBmm,          ///< batch × [m,k] × [k,n]
  kLinear,       ///< [m,k] × [k,n], optional bias
  kElementwise,  ///< m = 1, n = elements
  kSoftmax,      ///< m rows of n
  kLayerNorm,    ///< m rows of n
  kMemory,       ///< bound by memory traffic: gathers, copies, reductions; n = elements written
};

/// Whose kernels run the operators.
enum class Software : uint8_t { kPyTorch, kVllm, kSglang, kTensorRtLlm };

/// "pytorch", "vllm", "sglang", "trtllm".
const std::vector<std::string>& software_names();
std::string_view software_name(Software software);
std::optional<Software> find_software(std::string_view name);

std::string_view kernel_family_name(KernelFamily family);

/// The work of one launch: arithmetic, exact, no time in here.
struct Kernel {
  KernelFamily family = KernelFamily::kMemory;
  OpId op = 0;
  DType dtype = DType::kFp32;
  Software software = Software::kPyTorch;
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  int64_t flops = 0;        ///< multiply and add count as two
  int64_t read_bytes = 0;   ///< every input once
  int64_t write_bytes = 0;  ///< every output once

  int64_t bytes() const { return read_bytes + write_bytes; }
  bool is_matmul() const { return family == KernelFamily::kBmm || family == KernelFamily::kLinear; }
  bool operator==(const Kernel&) const = default;
};

}  // namespace tilecast
