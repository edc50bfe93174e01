#pragma once

#include <vector>

#include "command/option.h"

namespace tilecast {

struct Command;

/// The options of a trace that is a forecast's model, which other models do not have.
std::vector<CommandOption> options_of_traced_models();

/// 'tilecast forecast trace.json.gz': refuses what has no meaning for a trace, then asks as
/// 'tilecast trace' does.
void run_forecast_of_trace(const Command& command, const Given& given);

}  // namespace tilecast
