#pragma once

// A training step over several ranks: what reports of forecasts add for it.

#include <string>

#include "report/text_table.h"
#include "tilecast/result.h"

namespace tilecast {

/// Lines of the totals.
void add_parallel(Lines& lines, const Forecast& forecast);

/// A row for each stage; of many stages, the first and the last ones.
std::string stages_table(const ParallelForecast& parallel, const TableStyle& style);

/// A row for each rank with embedding tables; of many ranks, the first and the last ones.
std::string rank_tables_text(const std::vector<RankTables>& ranks, const TableStyle& style);
/// When each part of a step of a recommendation model runs.
std::string step_parts_text(const std::vector<StepPart>& parts, const TableStyle& style);

}  // namespace tilecast
