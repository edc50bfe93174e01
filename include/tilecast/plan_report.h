#pragma once

// The output of 'tilecast plan'. Library: tilecast::report.

#include <string>
#include <vector>

#include "tilecast/plan.h"
#include "tilecast/report.h"
#include "tilecast/serving_plan.h"

namespace tilecast {

/// The winner, why, the next candidates, and what does not fit.
std::string plan_table(const TrainingPlan& plan, const TableStyle& style = {});

/// Plans of the same training on different GPUs: the best of each, those that fit first by tokens/s
/// for each GPU, or with prices by cost.
std::vector<TrainingPlan> sorted_plans(const std::vector<TrainingPlan>& plans);
std::string plans_table(const std::vector<TrainingPlan>& plans, const TableStyle& style = {});
std::string plan_table(const ServingPlan& plan, const TableStyle& style = {});
/// The Pareto front: tokens/s for each GPU against tokens/s of a user, for each kind of GPU.
std::string plan_svg(const ServingPlan& plan);

}  // namespace tilecast
