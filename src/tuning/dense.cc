#include "tuning/dense.h"

#include <array>

// Fused multiply-add rounds once where two operations round twice: results would differ between
// machines. AVX2 alone does not enable it.
#if defined(__x86_64__)
#define TILECAST_AVX2 __attribute__((target("avx2")))
#endif

namespace tilecast::tuning {
namespace {

/// Four rows at once: out is read and written a quarter as often.
constexpr size_t kRows = 4;

inline __attribute__((always_inline)) void add_rows(const std::array<const float*, kRows>& row,
                                                    const std::array<float, kRows>& x,
                                                    std::span<float> out) {
  float* const o = out.data();
  const size_t count = out.size();
  const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  const float *w0 = row[0], *w1 = row[1], *w2 = row[2], *w3 = row[3];
  for (size_t j = 0; j < count; ++j)
    o[j] = o[j] + ((x0 * w0[j] + x1 * w1[j]) + (x2 * w2[j] + x3 * w3[j]));
}

inline __attribute__((always_inline)) void add_all(std::span<const float> x, const float* weights,
                                                   std::span<float> out) {
  std::array<const float*, kRows> row{};
  std::array<float, kRows> value{};
  size_t filled = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    row[filled] = weights + i * out.size();
    value[filled] = x[i];
    if (++filled < kRows) continue;
    add_rows(row, value, out);
    filled = 0;
  }
  if (filled == 0) return;
  for (; filled < kRows; ++filled) {
    row[filled] = weights;
    value[filled] = 0;
  }
  add_rows(row, value, out);
}

void add_plain(std::span<const float> x, const float* weights, std::span<float> out) {
  add_all(x, weights, out);
}

#ifdef TILECAST_AVX2
TILECAST_AVX2 void add_avx2(std::span<const float> x, const float* weights, std::span<float> out) {
  add_all(x, weights, out);
}
#endif

}  // namespace

void add_product(std::span<const float> x, const float* weights, std::span<float> out) {
#ifdef TILECAST_AVX2
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) return add_avx2(x, weights, out);
#endif
  add_plain(x, weights, out);
}

}  // namespace tilecast::tuning
