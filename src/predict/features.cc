#include "predict/features.h"

#include <algorithm>
#include <cmath>

namespace tilecast {

float flag(bool value) { return value ? 1.0f : 0.0f; }

float log2_of(double x) { return std::log2(static_cast<float>(std::max(x, 1e-30))); }

float log2_of(int64_t x) { return log2_of(static_cast<double>(x)); }

float alignment(int64_t x, int limit) {
  int bits = 0;
  while (bits < limit && x > 0 && (x >> bits) % 2 == 0) ++bits;
  return static_cast<float>(bits) / static_cast<float>(limit);
}

float fill_of(int64_t size, int64_t block) {
  if (size <= 0) return 0;
  return static_cast<float>(size) / static_cast<float>(ceil_divide(size, block) * block);
}

}  // namespace tilecast
