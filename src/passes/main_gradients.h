#pragma once

#include "graph/graph.h"
#include "tilecast/choices.h"

namespace tilecast {

/// Whether the gradients of parameters of this dtype are accumulated, kept and reduced in an fp32
/// buffer. Megatron-LM does so for bf16 parameters that have fp32 copies
/// (megatron/training/arguments.py, accumulate_allreduce_grads_in_fp32); gradients of fp16
/// parameters stay fp16 and are converted when the optimizer steps. Per parameter, that makes 18
/// and 20 bytes, and with states divided over d ranks 6 + 12/d and 4 + 16/d
/// (docs/source/api-guide/dist_optimizer.md).
inline bool has_fp32_gradients(MainParams main_params, DType parameter) {
  return main_params == MainParams::kFp32 && parameter == DType::kBf16;
}

/// Makes the gradients of bf16 parameters, to which the backward pass adds, fp32.
void accumulate_in_fp32(Graph& graph);

}  // namespace tilecast
