#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilecast/search.h"
#include "tilecast/view.h"

namespace tilecast {

/// "-6 +11 %": an interval around a value.
std::string percent_interval(double value, double low, double high);

/// "256 × 4,096 tokens"; "256 images".
std::string batch_text(const TrainingPlan& plan);

/// The commands that start software with the best candidate, to be pasted into a shell.
std::string launch_text(const std::vector<LaunchLine>& lines, const TableStyle& style);

/// What defects of Tilecast ended, with what to do; "": nothing.
std::string failures_text(const std::map<std::string, int64_t>& failures, const TableStyle& style);

}  // namespace tilecast
