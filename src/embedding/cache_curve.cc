#include "embedding/cache_curve.h"

#include <algorithm>
#include <cmath>

namespace tilecast {
namespace {

constexpr double kScale = 65535;
constexpr double kFirstExponent = 20, kPointsPerDoubling = 2;

}  // namespace

double CacheCurve::size_of(size_t point) {
  return std::exp2(kFirstExponent + static_cast<double>(point) / kPointsPerDoubling);
}

CacheCurve CacheCurve::of(const std::function<double(double)>& share) {
  CacheCurve curve;
  for (size_t i = 0; i < kPoints; ++i) {
    const double found = std::clamp(share(size_of(i)), 0.0, 1.0);
    curve.points[i] = static_cast<uint16_t>(std::lround(kScale * found));
  }
  return curve;
}

double CacheCurve::at(double cache_bytes) const {
  if (cache_bytes <= 0) return 0;
  const double first = size_of(0);
  if (cache_bytes <= first) return points[0] / kScale * cache_bytes / first;
  const double place = kPointsPerDoubling * (std::log2(cache_bytes) - kFirstExponent);
  if (place >= kPoints - 1) return points[kPoints - 1] / kScale;
  const auto below = static_cast<size_t>(place);
  const double part = place - static_cast<double>(below);
  return ((1 - part) * points[below] + part * points[below + 1]) / kScale;
}

}  // namespace tilecast
