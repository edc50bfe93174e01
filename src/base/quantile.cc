#include "base/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tilecast {

double quantile(std::vector<double> values, double share) {
  return quantile_in_place(values, share);
}

double quantile_in_place(std::span<double> values, double share) {
  if (values.empty()) return 0;
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), low, values.end());
  const auto high = std::min_element(low + 1, values.end());
  const double above = high == values.end() ? *low : *high;
  return *low + (place - std::floor(place)) * (above - *low);
}

}  // namespace tilecast
