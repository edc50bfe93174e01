#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace tilecast {

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, the same numbers on every platform, which
/// the standard library's distributions do not promise.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, n); the bias of at most n/2^64 is of no consequence here.
  uint64_t below(uint64_t n) { return next() % n; }

  /// A whole number from 1 to 2^bits, its logarithm uniform.
  int64_t log_uniform(int bits) { return static_cast<int64_t>(std::exp2(uniform() * bits)); }

  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace tilecast
