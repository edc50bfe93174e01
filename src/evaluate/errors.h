#pragma once

#include <vector>

#include "tilecast/learn.h"

namespace tilecast {

/// A measurement and its forecast, in any one unit.
struct ErrorSample {
  double measured, forecast, low, high;
};

/// Errors over all samples, of which there is at least one; names are left empty.
EvaluationRow errors_of(const std::vector<ErrorSample>& samples);

}  // namespace tilecast
