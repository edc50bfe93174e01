#pragma once

#include "ops/op_def.h"

namespace tilecast {

/// The widest floating-point dtype among the inputs from index `first` on, by PyTorch's promotion
/// rules (fp16 with bf16: fp32).
DType promoted_dtype(const OpContext& context, size_t first = 0);

}  // namespace tilecast
