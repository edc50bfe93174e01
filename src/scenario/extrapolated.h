#pragma once

// Whether the warnings of a forecast say that part of its time comes from no measurement.

#include <algorithm>
#include <vector>

#include "tilecast/result.h"

namespace tilecast {

/// Whether the warning says that part of the time comes from no measurement of the GPU's class or
/// links.
inline bool says_extrapolated(WarningCode code) {
  return code == WarningCode::kExtrapolated || code == WarningCode::kUnmeasuredLinks ||
         code == WarningCode::kNoModel || code == WarningCode::kUnmeasuredOperators;
}

inline bool is_extrapolated(const std::vector<Warning>& warnings) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [](const Warning& warning) { return says_extrapolated(warning.code); });
}

}  // namespace tilecast
