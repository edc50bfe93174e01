#pragma once

// What a layer of experts keeps for its backward pass, and what its kernels take meanwhile.

#include <optional>
#include <vector>

#include "ops/op_def.h"

namespace tilecast {

/// Kept of the forward pass `experts`, for each token and expert of the rank.
TensorSpec kept_of_experts(const OpContext& context);
/// Taken by PyTorch's kernels of the forward pass beside its result; nullopt: another software's.
std::optional<TensorSpec> scratch_of_experts(const OpContext& context);
/// The same of `experts_backward`, whose results are `gradients`.
std::optional<TensorSpec> scratch_of_experts_backward(const OpContext& context,
                                                      const std::vector<TensorSpec>& gradients);

}  // namespace tilecast
