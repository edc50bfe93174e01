#include "ops/experts_memory.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ops/expert_load.h"

namespace tilecast {
namespace {

int64_t element_bytes(DType dtype) { return ceil_divide(dtype_bits(dtype), 8); }

/// Rows of the rank's experts, one for each token that goes to one of them.
int64_t expert_rows(const OpContext& context, const Tensor& x, const Shape& up) {
  const int64_t top_k = context.integer("top_k"), ranks = context.integer("ranks");
  const int64_t tokens = element_count(x.shape) / std::max<int64_t>(1, x.shape.back());
  if (context.integer("all_tokens") != 0) return checked_multiply(tokens, up[0]);
  if (const int64_t skew = context.integer("skew_percent"); skew > 0) {
    const ExpertLoad load = expert_load(tokens, top_k, checked_multiply(up[0], ranks), ranks, skew);
    return static_cast<int64_t>(std::ceil(load.assignments));
  }
  return ceil_divide(checked_multiply(tokens, top_k), ranks);
}

/// Rows as wide as the FFN between the two products: the activation and its product with up. With
/// clamps, gpt-oss's gate: gate and up are limited, and a sigmoid, a product and a sum follow.
/// Megatron-LM's code joins the limited ones again, and has one kernel for the rest.
int64_t activations_of(const OpContext& context, const Shape& up, const Shape& down) {
  const int64_t parts = up[1] / down[2];
  if (context.integer("clamped") == 0) return parts;
  return context.integer("fused_rows") != 0 ? parts + 1 : 5;
}

/// What else PyTorch's kernels of the layer take (transformers 5.24, integrations/moe.py,
/// grouped_mm_experts_forward). Its variables hold the gathered rows to the end, and the rows
/// before while the next ones are made; rows weighted by the router's weights have their dtype.
int64_t scratch_bytes(const OpContext& context, const Tensor& x, const Shape& up,
                      const Shape& down) {
  const int64_t rows = expert_rows(context, x, up), size = element_bytes(x.dtype);
  const int64_t hidden = x.shape.back();
  const int64_t weighted_size = context.integer("fp32_sum") != 0 ? 4 : size;
  const int64_t weighted = checked_product({2, rows, hidden, weighted_size});
  int64_t most = weighted;
  if (context.integer("keeps") == 0) {
    const int64_t bias = context.integer("biased") != 0 ? up[1] : 0;
    const int64_t inner = checked_add(checked_add(hidden, up[1] + bias),
                                      checked_multiply(activations_of(context, up, down), down[2]));
    most = std::max(checked_product({rows, inner, size}),
                    checked_add(checked_product({2, rows, hidden, size}), weighted));
  }
  return std::max<int64_t>(0, most - memory_bytes(x));  // the result is counted already
}

/// PyTorch's kernels of their own, not Megatron-LM's.
bool takes_scratch(const OpContext& context) {
  return context.integer("grouped") != 0 && context.integer("fused_rows") == 0 &&
         context.attribute<QuantScheme>("scheme") == QuantScheme::kNone;
}

}  // namespace

TensorSpec kept_of_experts(const OpContext& context) {
  // The gathered row, gate and up, the activation, its product with up if gated, the result
  // (transformers, integrations/moe.py). Autograd keeps what a product multiplies with its weights
  // only for their gradients: not of frozen weights.
  const Tensor& x = context.input(0);
  const Shape& up = context.input(1).shape;
  const Shape& down = context.input(2).shape;
  const bool frozen = context.integer("frozen") != 0;
  const int64_t rows = expert_rows(context, x, up);
  // The activation, and its product with up; they may be computed again.
  const int64_t activations = context.integer("activation_again") != 0
                                  ? 0
                                  : activations_of(context, up, down) - (frozen ? 1 : 0);
  const int64_t inner = checked_add(up[1], checked_multiply(activations, down[2]));
  TensorSpec kept{
      .shape = {rows, checked_add(inner, checked_multiply(frozen ? 1 : 2, x.shape.back()))},
      .dtype = x.dtype};
  if (context.integer("fp32_router") != 0 && dtype_bits(x.dtype) < 32)
    kept.stored_bytes = checked_add(checked_product({rows, kept.shape[1], element_bytes(x.dtype)}),
                                    checked_multiply(4, element_count(x.shape)));
  return kept;
}

std::optional<TensorSpec> scratch_of_experts(const OpContext& context) {
  if (!takes_scratch(context)) return std::nullopt;
  const int64_t bytes =
      scratch_bytes(context, context.input(0), context.input(1).shape, context.input(2).shape);
  return TensorSpec{.shape = {bytes}, .dtype = DType::kInt8};
}

std::optional<TensorSpec> scratch_of_experts_backward(const OpContext& context,
                                                      const std::vector<TensorSpec>& gradients) {
  if (!takes_scratch(context) || context.integer("keeps") == 0) return std::nullopt;
  // Three times the weighted rows: their gradient, and both of the product's; before there are
  // gradients of weights.
  const Tensor& x = context.input(1);
  const int64_t size = context.integer("fp32_sum") != 0 ? 4 : element_bytes(x.dtype);
  int64_t rest =
      checked_product({3, expert_rows(context, x, context.input(2).shape), x.shape.back(), size});
  for (const TensorSpec& spec : gradients)
    rest -= std::min(rest, checked_multiply(element_count(spec.shape), element_bytes(spec.dtype)));
  return TensorSpec{.shape = {rest}, .dtype = DType::kInt8};
}

}  // namespace tilecast
