#include "measurements/call_excess.h"

#include <algorithm>
#include <cstddef>

namespace tilecast {

double smallest_excess(std::vector<LawAndExcess> calls) {
  if (calls.empty()) return 0;
  const size_t shortest = std::min(calls.size(), std::clamp<size_t>(calls.size() / 20, 12, 300));
  std::nth_element(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(shortest - 1),
                   calls.end(),
                   [](const LawAndExcess& a, const LawAndExcess& b) { return a.law_s < b.law_s; });
  std::vector<double> excess;
  for (size_t i = 0; i < shortest; ++i) excess.push_back(calls[i].excess_s);
  // The second smallest: a single lucky call does not count.
  const size_t second = std::min<size_t>(1, excess.size() - 1);
  std::nth_element(excess.begin(), excess.begin() + static_cast<std::ptrdiff_t>(second),
                   excess.end());
  return excess[second];
}

}  // namespace tilecast
