#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tilecast {

/// The share of bytes that a cache of any size answers: what a kernel says of its reuse without
/// knowing the device. Held at sizes of 2^20, 2^20.5, …, 2^30 bytes, in 1/65535.
struct CacheCurve {
  static constexpr size_t kPoints = 21;
  std::array<uint16_t, kPoints> points{};

  /// Between two sizes linear in the logarithm of the size; below the smallest in proportion to it.
  double at(double cache_bytes) const;
  /// Bytes of the cache at a point.
  static double size_of(size_t point);
  /// `share` must not fall with the size.
  static CacheCurve of(const std::function<double(double cache_bytes)>& share);

  bool operator==(const CacheCurve&) const = default;
};

}  // namespace tilecast
