#include "predict/mlp.h"

#include <algorithm>

namespace tilecast {
namespace {

// Kernels that go through a layer together, one per SIMD lane of four registers. A fixed block
// keeps each kernel's sum in one order, so a result does not depend on what else is in the batch;
// a general matrix product (Eigen, BLAS) does not promise that.
constexpr size_t kBlock = 16;

using Vector = float __attribute__((vector_size(kBlock * sizeof(float))));

/// In an aligned struct: std::vector drops the alignment of a bare vector type, and without wide
/// registers the compiler would give it less than the clones below rely on.
struct alignas(kBlock * sizeof(float)) Lane {
  Vector v;
};

// Wider registers only take more lanes at once: with contraction to fused multiply-adds off (see
// CMakeLists.txt) every clone gives the same bits. Sanitizers do not get along with the resolver.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TILECAST_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TILECAST_CLONES
#endif

/// in: [in_width] lanes of kBlock kernels; out: [out_width] lanes.
TILECAST_CLONES void layer(const float* weights, const float* bias, int in_width, int out_width,
                           const Lane* in, Lane* out, bool relu) {
  for (int o = 0; o < out_width; ++o) {
    Vector sum = Vector{} + bias[o];
    const float* row = weights + static_cast<size_t>(o) * static_cast<size_t>(in_width);
    for (int i = 0; i < in_width; ++i) sum += row[i] * in[i].v;
    out[o].v = relu ? (sum > 0.0f ? sum : Vector{}) : sum;
  }
}

}  // namespace

size_t mlp_parameter_count(const std::vector<int>& widths) {
  size_t count = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i)
    count += static_cast<size_t>(widths[i] + 1) * static_cast<size_t>(widths[i + 1]);
  return count;
}

void mlp_forward(const Mlp& mlp, const float* inputs, size_t stride, size_t count, float* outputs) {
  const int widest = *std::max_element(mlp.widths.begin(), mlp.widths.end());
  std::vector<Lane> a(static_cast<size_t>(widest));
  std::vector<Lane> b(static_cast<size_t>(widest));
  const auto in_width = static_cast<size_t>(mlp.widths.front());
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t used = std::min(kBlock, count - start);
    for (size_t i = 0; i < in_width; ++i) {
      a[i].v = Vector{};
      for (size_t j = 0; j < used; ++j) a[i].v[j] = inputs[(start + j) * stride + i];
    }
    const float* at = mlp.parameters.data();
    for (size_t l = 0; l + 1 < mlp.widths.size(); ++l) {
      const int in = mlp.widths[l];
      const int out = mlp.widths[l + 1];
      const float* bias = at + static_cast<size_t>(in) * static_cast<size_t>(out);
      layer(at, bias, in, out, a.data(), b.data(), l + 2 < mlp.widths.size());
      std::swap(a, b);
      at = bias + out;
    }
    for (size_t j = 0; j < used; ++j) outputs[start + j] = a[0].v[j];
  }
}

void ensemble_forward(const std::vector<Mlp>& members, const float* inputs, size_t stride,
                      size_t count, float* outputs) {
  std::fill(outputs, outputs + count, 0.0f);
  std::vector<float> member(count);
  for (const Mlp& mlp : members) {
    mlp_forward(mlp, inputs, stride, count, member.data());
    for (size_t i = 0; i < count; ++i) outputs[i] += member[i];
  }
  for (size_t i = 0; i < count; ++i) outputs[i] /= static_cast<float>(members.size());
}

}  // namespace tilecast
