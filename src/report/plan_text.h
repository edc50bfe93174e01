#pragma once

#include <string>

#include "tilecast/plan_report.h"

namespace tilecast {

/// A candidate as options of 'tilecast forecast'.
std::string options_text(const TrainingCandidate& candidate);
std::string options_text(const ServingPlan& plan, const ServingCandidate& candidate);

}  // namespace tilecast
