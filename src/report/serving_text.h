#pragma once

// What is shown of a server under load.

#include <string>

#include "base/json.h"
#include "report/text_table.h"
#include "tilecast/llm.h"

namespace tilecast {

Json estimate_json(const Estimate& estimate);

/// The load, what clients see over all requests and over the steady part, and what that part is.
std::string serving_text(const LlmForecast::Serving& serving, const TableStyle& style);
Json serving_json(const LlmForecast::Serving& serving);

}  // namespace tilecast
