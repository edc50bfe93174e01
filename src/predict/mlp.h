#pragma once

#include <cstddef>
#include <vector>

namespace tilecast {

/// A multilayer perceptron with ReLU between its layers and one linear output.
/// Parameters lie layer by layer: weights [out, in] row by row, then biases [out].
struct Mlp {
  std::vector<int> widths;        ///< input, hidden…, 1
  std::vector<float> parameters;  ///< parameter_count(widths) of them

  bool operator==(const Mlp&) const = default;
};

size_t mlp_parameter_count(const std::vector<int>& widths);

/// Outputs for `count` inputs: the first widths[0] floats of rows of `stride`.
/// The same inputs give the same bits whatever stands beside them in the batch.
void mlp_forward(const Mlp& mlp, const float* inputs, size_t stride, size_t count, float* outputs);

/// Mean output of an ensemble (at least one member).
void ensemble_forward(const std::vector<Mlp>& members, const float* inputs, size_t stride,
                      size_t count, float* outputs);

}  // namespace tilecast
