#pragma once

#include <vector>

namespace tilecast {

/// The value below which a share of the values lies (0.5: the median), interpolated between the two
/// nearest. 0 without values.
double quantile(std::vector<double> values, double share);

}  // namespace tilecast
