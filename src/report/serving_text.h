#pragma once

// Tables and JSON of a server under load.

#include <string>

#include "base/json.h"
#include "report/text_table.h"
#include "tilecast/result.h"

namespace tilecast {

/// The load, `sequences` of the longest length that the cache holds, the metrics of clients over
/// all requests and in the steady part, and a note that explains the steady part.
std::string serving_text(const GenerationForecast::Serving& serving, int64_t sequences,
                         const TableStyle& style);

}  // namespace tilecast
