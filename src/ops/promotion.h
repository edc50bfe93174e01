#pragma once

#include "ops/op_def.h"

namespace tilecast {

/// The widest of the inputs' floating types from the `first` on, as PyTorch promotes them inside a
/// kernel (fp16 beside bf16: fp32).
DType promoted_dtype(const OpContext& context, size_t first = 0);

}  // namespace tilecast
