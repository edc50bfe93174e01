#pragma once

#include <span>
#include <vector>

namespace tilecast {

/// The value below which a share of the values lies (0.5: the median), interpolated between the two
/// nearest. 0 without values.
double quantile(std::vector<double> values, double share);
/// The same, of values whose order may change.
double quantile_in_place(std::span<double> values, double share);

}  // namespace tilecast
