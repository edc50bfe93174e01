#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"
#include "graph/graph.h"
#include "graph/scheme.h"

namespace tilecast {

/// Which law forecasts a kernel.
enum class KernelFamily : uint8_t {
  kBmm,              ///< batch × [m,k] × [k,n]
  kLinear,           ///< [m,k] × [k,n], optional bias
  kElementwise,      ///< m = 1, n = elements
  kSoftmax,          ///< m rows of n
  kLayerNorm,        ///< m rows of n
  kMemory,           ///< bound by memory traffic: gathers, copies, reductions; n = elements written
  kAttention,        ///< fused; batch sequences, m queries against n keys each, k = head size
  kDecodeAttention,  ///< the same with one query a sequence, against a cache
  kExperts,          ///< fused expert layer: m tokens, n = inner width, k = hidden width
  kCollective,       ///< all-reduce over the ranks of a node; n = elements
};

/// Whose kernels run the operators.
enum class Software : uint8_t { kPyTorch, kVllm, kSglang, kTensorRtLlm };

/// "pytorch", "vllm", "sglang", "trtllm".
const std::vector<std::string>& software_names();
std::string_view software_name(Software software);
std::optional<Software> find_software(std::string_view name);

std::string_view kernel_family_name(KernelFamily family);

/// What a fused attention kernel has beside batch, m, n and k.
struct AttentionShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t window = 0;  ///< keys that a query sees at most; 0: all
  bool causal = false;
  bool backward = false;
  DType kv_dtype = DType::kBf16;
  bool operator==(const AttentionShape&) const = default;
};

/// What a fused expert layer has beside m, n and k. One rank's share: n is the inner width that the
/// rank holds of each expert.
struct ExpertShape {
  int64_t experts = 0;       ///< of the layer
  int64_t chosen = 0;        ///< experts a token goes to
  int64_t ranks = 1;         ///< that the experts are spread over
  int64_t skew_percent = 0;  ///< see expert_load.h
  double busy = 0;           ///< experts of the rank that get a token
  double assignments = 0;    ///< tokens times experts that the rank computes
  bool operator==(const ExpertShape&) const = default;
};

/// The work of one launch: arithmetic, exact, no time in here.
struct Kernel {
  KernelFamily family = KernelFamily::kMemory;
  OpId op = 0;
  DType dtype = DType::kFp32;
  Software software = Software::kPyTorch;
  Scheme scheme = Scheme::kNone;  ///< of the weights; of products and experts
  /// Whether the operands are taken to lie in L2 already, as when a benchmark replays a kernel. In
  /// a model other layers come in between.
  bool warm = false;
  bool convolution = false;  ///< a product whose first matrix is gathered from an image
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  int64_t flops = 0;        ///< multiply and add count as two
  int64_t read_bytes = 0;   ///< every input once
  int64_t write_bytes = 0;  ///< every output once
  AttentionShape attention;
  ExpertShape experts;
  int64_t ranks = 1;  ///< of a collective

  int64_t bytes() const { return read_bytes + write_bytes; }
  bool is_matmul() const { return family == KernelFamily::kBmm || family == KernelFamily::kLinear; }
  bool is_attention() const {
    return family == KernelFamily::kAttention || family == KernelFamily::kDecodeAttention;
  }
  /// What the matrix units multiply.
  DType multiplied() const { return multiplied_dtype(scheme, dtype); }
  bool uses_matrix_units() const {
    return is_matmul() || is_attention() || family == KernelFamily::kExperts;
  }
  bool operator==(const Kernel&) const = default;
};

/// "bf16", "fp8_block": the scheme of the weights where there is one; for attention that of queries
/// and of the cache ("bf16/fp8").
std::string precision_name(const Kernel& kernel);

}  // namespace tilecast
