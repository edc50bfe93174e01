#include "tuning/transformer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "tuning/dense.h"

namespace tilecast::tuning {
namespace {

constexpr float kEpsilon = 1e-5F;  // PyTorch's LayerNorm
/// No layer of a model is wider, no source or prefix longer: translator.cc checks it.
constexpr size_t kWidestLayer = 1024;

/// The sum of `term(i)`, in eight parts: one sum would wait for itself at each addition.
template <typename Term>
inline float sum_of(size_t count, Term term) {
  constexpr size_t kParts = 8;
  std::array<float, kParts> part{};
  size_t i = 0;
  for (; i + kParts <= count; i += kParts) {
    for (size_t j = 0; j < kParts; ++j) part[j] += term(i + j);
  }
  for (; i < count; ++i) part[i % kParts] += term(i);
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

}  // namespace

Linear::Linear(const Tensors& tensors, const std::string& name, size_t inputs, size_t outputs)
    : weight(tensors.get(name + ".weight", inputs, outputs)),
      bias(tensors.get(name + ".bias", 1, outputs)) {}

void Linear::apply(std::span<const float> x, std::span<float> y) const {
  std::copy(bias.values.begin(), bias.values.end(), y.begin());
  add_product(x, weight.data(), y);
}

Norm::Norm(const Tensors& tensors, const std::string& name, size_t width)
    : weight(tensors.get(name + ".weight", 1, width)),
      bias(tensors.get(name + ".bias", 1, width)) {}

void Norm::apply(std::span<const float> x, std::span<float> y) const {
  const float mean =
      sum_of(x.size(), [&](size_t i) { return x[i]; }) / static_cast<float>(x.size());
  const float squares = sum_of(x.size(), [&](size_t i) { return (x[i] - mean) * (x[i] - mean); });
  const float scale = 1 / std::sqrt(squares / static_cast<float>(x.size()) + kEpsilon);
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean) * scale * weight.values[i] + bias.values[i];
}

AttentionBlock::AttentionBlock(const Tensors& tensors, const std::string& name, size_t width,
                               size_t heads_of_block)
    : norm(tensors, name + ".norm", width),
      q(tensors, name + ".q", width, width),
      k(tensors, name + ".k", width, width),
      v(tensors, name + ".v", width, width),
      o(tensors, name + ".o", width, width),
      heads(heads_of_block) {}

void AttentionBlock::attend(std::span<float> x, std::span<const float> normed,
                            std::span<const float> keys, std::span<const float> values) const {
  const size_t width = x.size(), size = width / heads, count = keys.size() / width;
  TILECAST_CHECK(width <= kWidestLayer && count <= kWidestLayer);
  std::array<float, kWidestLayer> query, mixed, weights;
  q.apply(normed, std::span(query).first(width));
  std::fill_n(mixed.begin(), width, 0.0f);
  const float scale = 1 / std::sqrt(static_cast<float>(size));
  for (size_t h = 0; h < heads; ++h) {
    float largest = -1e30F, total = 0;
    for (size_t t = 0; t < count; ++t) {
      const float* const asked = query.data() + h * size;
      const float* const key = keys.data() + t * width + h * size;
      weights[t] = scale * sum_of(size, [&](size_t i) { return asked[i] * key[i]; });
      largest = std::max(largest, weights[t]);
    }
    for (size_t t = 0; t < count; ++t) total += weights[t] = std::exp(weights[t] - largest);
    for (size_t t = 0; t < count; ++t) {
      const float weight = weights[t] / total;
      for (size_t i = h * size; i < (h + 1) * size; ++i) mixed[i] += weight * values[t * width + i];
    }
  }
  std::array<float, kWidestLayer> out;
  o.apply(std::span(mixed).first(width), std::span(out).first(width));
  for (size_t i = 0; i < width; ++i) x[i] += out[i];
}

InnerBlock::InnerBlock(const Tensors& tensors, const std::string& name, size_t width, size_t inner)
    : norm(tensors, name + ".norm", width),
      a(tensors, name + ".a", width, inner),
      b(tensors, name + ".b", inner, width) {}

void InnerBlock::apply(std::span<float> x) const {
  std::array<float, kWidestLayer> normed, hidden, out;
  const size_t width = x.size(), inner = a.bias.columns;
  norm.apply(x, std::span(normed).first(width));
  a.apply(std::span(normed).first(width), std::span(hidden).first(inner));
  for (size_t i = 0; i < inner; ++i) hidden[i] = std::max(hidden[i], 0.0f);
  b.apply(std::span(hidden).first(inner), std::span(out).first(width));
  for (size_t i = 0; i < width; ++i) x[i] += out[i];
}

}  // namespace tilecast::tuning
