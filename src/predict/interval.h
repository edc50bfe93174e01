#pragma once

#include <array>
#include <cstddef>

namespace tilecast {

/// Share of measurements that an interval holds.
inline constexpr double kCoverage = 0.8;

/// How far measurements lie from their forecasts, by the kernel's size: logarithms of the factors
/// on the forecast between which 80 % of them lie, at three sizes of the physical bound. Short
/// kernels scatter more than long ones.
struct IntervalLaw {
  /// Bounds in latency floors: rows of up to 1, up to 10, and above stand for these.
  static constexpr size_t kSizes = 3;
  static constexpr std::array<double, kSizes> kAnchors = {0.5, 3, 30};
  static size_t bin_of(double bound) { return bound < 1 ? 0 : bound < 10 ? 1 : 2; }

  /// Before anything is known: half to twice (guess).
  static constexpr double kUnknown = 0.7;
  std::array<double, kSizes> low_log = {-kUnknown, -kUnknown, -kUnknown};  ///< <= 0
  std::array<double, kSizes> high_log = {kUnknown, kUnknown, kUnknown};    ///< >= 0
  /// Share of the errors' variance that all kernels of a device have in common: errors of a sum
  /// cancel only in the rest.
  double common_share = 1;

  struct Logs {
    double low, high;
  };
  /// Between the anchors linear in the logarithm of the bound (in latency floors).
  Logs at(double bound) const;
  bool valid() const;
  bool operator==(const IntervalLaw&) const = default;
};

}  // namespace tilecast
