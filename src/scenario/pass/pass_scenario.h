#pragma once

// The scenarios of one pass or training step: on one rank, on several, of a recommendation model.

#include "scenario/scenario.h"

namespace tilecast {

Result run_pass(const Inquiry& inquiry);
Result run_parallel_pass(const Inquiry& inquiry);
Result run_recommendation_pass(const Inquiry& inquiry);

}  // namespace tilecast
