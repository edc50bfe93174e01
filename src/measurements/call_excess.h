#pragma once

#include <vector>

namespace tilecast {

/// The value below which a share q of the values lies; 0 if there are none.
double quantile(std::vector<double> values, double q);

/// A call's time by the law, and what the measurement exceeds it by.
struct LawAndExcess {
  double law_s, excess_s;
};

/// About the smallest excess of the shortest kernels. Longer ones say little of the host: a law
/// that is off by a tenth hides its overhead.
double smallest_excess(std::vector<LawAndExcess> calls);

}  // namespace tilecast
