#pragma once

// The sizes that describe a matrix product without a graph.

#include <vector>

#include "ops/sizes.h"

namespace tilecast {

std::vector<SizeDef> linear_sizes_by_name();
std::vector<SizeDef> quantized_linear_sizes_by_name();
std::vector<SizeDef> matmul_sizes_by_name();
std::vector<SizeDef> gemm_sizes_by_name();

Operands linear_operands(GraphBuilder& b, const GivenSizes& s);
Operands quantized_linear_operands(GraphBuilder& b, const GivenSizes& s);
Operands matmul_operands(GraphBuilder& b, const GivenSizes& s);
Operands gemm_operands(GraphBuilder& b, const GivenSizes& s);

/// Products of activations and quantized weights, with a random scheme.
RandomSizes random_quantized_linear();

}  // namespace tilecast
