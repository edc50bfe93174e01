#pragma once

#include <string>

#include "tilecast/plan_report.h"

namespace tilecast {

/// "-6 +11 %": an interval around a value.
std::string percent_interval(double value, double low, double high);

}  // namespace tilecast
