#include "predict/similarity.h"

#include <algorithm>
#include <cmath>

namespace tilecast {

Signature signature_of(const Device& d) {
  const double peak = std::max(1.0, d.matmul_peak(DType::kFp32));
  const auto lg = [](double x) { return static_cast<float>(std::log2(std::max(x, 1e-30))); };
  return {lg(peak / d.memory_bytes_per_s),
          lg(static_cast<double>(d.gpu().l2_bytes)),
          lg(static_cast<double>(d.gpu().sm_count)),
          lg(d.gpu().boost_clock_hz),
          lg(peak / (static_cast<double>(d.gpu().sm_count) * d.gpu().boost_clock_hz)),
          lg(d.gpu().board_power_w / peak)};
}

float similarity(const Signature& a, const Signature& b) {
  constexpr float kLength = 0.5f;
  float distance = 0;
  for (size_t i = 0; i < kSignatureSize; ++i) distance += (a[i] - b[i]) * (a[i] - b[i]);
  return std::exp(-distance / (2 * kLength * kLength));
}

}  // namespace tilecast
