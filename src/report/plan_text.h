#pragma once

#include <string>

#include "tilecast/view.h"

namespace tilecast {

/// "-6 +11 %": an interval around a value.
std::string percent_interval(double value, double low, double high);

}  // namespace tilecast
