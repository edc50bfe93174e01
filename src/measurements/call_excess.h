#pragma once

#include <vector>

namespace tilecast {

/// A call's time by the law, and what the measurement exceeds it by.
struct LawAndExcess {
  double law_s, excess_s;
};

/// About the smallest excess of the shortest kernels. Longer ones say little of the host: a law
/// that is off by a tenth hides its overhead. 0 without calls.
double smallest_excess(std::vector<LawAndExcess> calls);

}  // namespace tilecast
