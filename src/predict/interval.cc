#include "predict/interval.h"

#include <algorithm>
#include <cmath>

namespace tilecast {

IntervalLaw::Logs IntervalLaw::at(double bound) const {
  const double x = std::log(std::max(bound, 1e-9));
  if (x <= std::log(kAnchors.front())) return {low_log.front(), high_log.front()};
  for (size_t i = 1; i < kAnchors.size(); ++i) {
    const double left = std::log(kAnchors[i - 1]), right = std::log(kAnchors[i]);
    if (x > right) continue;
    const double t = (x - left) / (right - left);
    return {std::lerp(low_log[i - 1], low_log[i], t), std::lerp(high_log[i - 1], high_log[i], t)};
  }
  return {low_log.back(), high_log.back()};
}

bool IntervalLaw::valid() const {
  constexpr double kLargest = 14;  // a factor of a million
  bool valid = common_share >= 0 && common_share <= 1;
  for (const double low : low_log) valid = valid && low <= 0 && low > -kLargest;
  for (const double high : high_log) valid = valid && high >= 0 && high < kLargest;
  return valid;
}

}  // namespace tilecast
