#pragma once

#include "graph/graph.h"

namespace tilecast {

/// Whether the operator is the product that gradients of linear layers are computed by: gemm, or
/// the same in few bits.
bool is_gemm(OpId op);

}  // namespace tilecast
