#pragma once

// Tables and JSON of a server under load.

#include <string>

#include "base/json.h"
#include "report/text_table.h"
#include "tilecast/result.h"

namespace tilecast {

/// The load, the metrics of clients over all requests and in the steady state, and a note that
/// explains the steady state.
std::string serving_text(const GenerationForecast::Serving& serving, const TableStyle& style);

}  // namespace tilecast
