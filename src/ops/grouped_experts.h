#pragma once

// The kernels of a layer of experts in PyTorch: tokens sorted by their experts, grouped products,
// activations and sums as kernels of their own (transformers 5, integrations/moe.py, with
// torch.nn.functional.grouped_mm).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/kernel.h"

namespace tilecast {

/// One rank's share of a layer.
struct GroupedExperts {
  double assignments = 0;     ///< (token, expert) pairs that the rank computes
  double active_experts = 0;  ///< experts of the rank that get a token
  int64_t tokens = 0;
  int64_t hidden_dim = 0;
  int64_t ffn_dim = 0;
  bool gated = false;
  DType dtype = DType::kBf16;
  /// Of products in 8 bits, whose operands are cast first; kNone: in `dtype`.
  QuantScheme scheme = QuantScheme::kNone;
  bool activation_again = false;  ///< is computed in the backward pass too
  bool scaled_first = false;      ///< a kernel finds the largest value before a cast
  bool frozen = false;            ///< weights get no gradient
  /// Megatron-LM's kernels with Transformer Engine: rows are weighted in the activation, biases are
  /// added expert by expert, each expert has a product of its own.
  bool fused = false;
  bool sorted_again = false;  ///< rows come from other ranks, in the order of these
  bool biased = false;
  /// Gate and up are limited before the activation, by kernels of their own.
  bool clamped = false;
  /// The host waits for the numbers of tokens before the first product.
  bool counts_awaited = false;
  int64_t own_tokens = 0;    ///< of the rank, where `tokens` are those of all that send to it
  int64_t tensor_ranks = 1;  ///< that divide each expert, and gather each other's rows
};

/// Throws Error{kInput} where sizes overflow, as the next two.
void add_grouped_forward(const GroupedExperts& layer, std::vector<Kernel>& kernels);
void add_grouped_input_gradient(const GroupedExperts& layer, std::vector<Kernel>& kernels);
/// Kernels that the next appends, the last of the layer's backward pass.
inline constexpr size_t kWeightGradientKernels = 2;
/// `experts` of the rank, whose gradients are written whole.
void add_grouped_weight_gradient(const GroupedExperts& layer, int64_t experts,
                                 std::vector<Kernel>& kernels);

}  // namespace tilecast
