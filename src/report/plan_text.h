#pragma once

#include <string>

#include "tilecast/plan_report.h"

namespace tilecast {

/// "-6 +11 %": an interval around a value.
std::string percent_interval(double value, double low, double high);

/// A candidate as options of 'tilecast forecast'.
std::string options_text(const TrainingCandidate& candidate);
std::string options_text(const ServingPlan& plan, const ServingCandidate& candidate);

}  // namespace tilecast
