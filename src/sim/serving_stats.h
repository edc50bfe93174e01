#pragma once

// From the times of single requests to what a benchmark reports.

#include "sim/serving.h"

namespace tilecast {

/// Fills in `requests`, `all`, `steady` and `most_in_flight`.
ServingResult summarize(std::vector<RequestTimes> requests, int64_t most_in_flight);

/// Whether the last requests to arrive wait longer than the first ones by less than ten requests
/// take. `busy_s`: seconds that the server worked.
bool queue_is_short(const std::vector<RequestTimes>& requests, double busy_s);

/// Whether that is so, or chance explains it.
bool queue_is_steady(const std::vector<RequestTimes>& requests, double busy_s);

}  // namespace tilecast
