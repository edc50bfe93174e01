#pragma once

// The output of 'tilecast plan'. Of tilecast::report.

#include <string>

#include "tilecast/plan.h"
#include "tilecast/report.h"

namespace tilecast {

/// The winner, why, the next candidates, and what does not fit.
std::string plan_table(const TrainingPlan& plan, const TableStyle& style = {});
/// All candidates; docs/schema/plan.schema.json.
std::string plan_json(const TrainingPlan& plan);
std::string plan_csv(const TrainingPlan& plan);

}  // namespace tilecast
