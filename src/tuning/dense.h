#pragma once

// Products of a vector with matrices that lie in a weights file, row after row of inputs.

#include <cstddef>
#include <span>

namespace tilecast::tuning {

/// out[j] += sum over i of x[i] * weights[i][j], with out.size() numbers a row. Inputs that are 0
/// cost nothing, as half of a layer's are after ReLU. The same bits with and without AVX2.
void add_product(std::span<const float> x, const float* weights, std::span<float> out);

}  // namespace tilecast::tuning
