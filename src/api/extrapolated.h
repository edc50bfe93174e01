#pragma once

// Whether the warnings of a forecast say that part of its time comes from no measurement.

#include <algorithm>
#include <vector>

#include "tilecast/warning.h"

namespace tilecast {

/// Part of the time comes from no measurement of the GPU's class or links.
inline bool is_extrapolated(const std::vector<Warning>& warnings) {
  return std::any_of(warnings.begin(), warnings.end(), [](const Warning& warning) {
    return warning.code == WarningCode::kExtrapolated ||
           warning.code == WarningCode::kUnmeasuredLinks || warning.code == WarningCode::kNoModel ||
           warning.code == WarningCode::kUnmeasuredOperators;
  });
}

}  // namespace tilecast
