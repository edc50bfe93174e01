#pragma once

// The parts of a transformer (Vaswani et al. 2017), normalized before each part, on single vectors.

#include <span>
#include <string>
#include <vector>

#include "tuning/tensors.h"

namespace tilecast::tuning {

/// y = x W + b.
struct Linear {
  Linear() = default;
  Linear(const Tensors& tensors, const std::string& name, size_t inputs, size_t outputs);
  void apply(std::span<const float> x, std::span<float> y) const;

  Tensor weight, bias;
};

/// Layer normalization with scale and shift.
struct Norm {
  Norm() = default;
  Norm(const Tensors& tensors, const std::string& name, size_t width);
  void apply(std::span<const float> x, std::span<float> y) const;

  Tensor weight, bias;
};

/// Attention of one query vector to keys and values that lie one after the other.
struct AttentionBlock {
  AttentionBlock(const Tensors& tensors, const std::string& name, size_t width, size_t heads);
  /// x += output(attention(query(norm(x)), keys, values)).
  void attend(std::span<float> x, std::span<const float> normed, std::span<const float> keys,
              std::span<const float> values) const;

  Norm norm;
  Linear q, k, v, o;
  size_t heads = 1;
};

/// x += b(relu(a(norm(x)))).
struct InnerBlock {
  InnerBlock(const Tensors& tensors, const std::string& name, size_t width, size_t inner);
  void apply(std::span<float> x) const;

  Norm norm;
  Linear a, b;
};

}  // namespace tilecast::tuning
