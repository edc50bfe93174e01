#include "measurements/call_excess.h"

#include <algorithm>
#include <cstddef>

namespace tilecast {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

double smallest_excess(std::vector<LawAndExcess> calls) {
  const size_t shortest = std::min(calls.size(), std::clamp<size_t>(calls.size() / 20, 12, 300));
  std::nth_element(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(shortest - 1),
                   calls.end(),
                   [](const LawAndExcess& a, const LawAndExcess& b) { return a.law_s < b.law_s; });
  std::vector<double> excess;
  for (size_t i = 0; i < shortest; ++i) excess.push_back(calls[i].excess_s);
  // The third smallest: a single lucky call does not count.
  return quantile(excess, 2.0 / static_cast<double>(shortest));
}

}  // namespace tilecast
