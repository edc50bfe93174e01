#pragma once

// Converts a request for a server into the input of its scheduler.

#include <cstdint>

#include "sim/serving.h"
#include "tilecast/request.h"

namespace tilecast {

/// The request with the mean prompt and output length and with the software filled in. The lengths
/// of a static batch stay unchanged.
Request typical_request(const Request& request);

/// Tokens of the longest request: prompt plus output.
int64_t longest_request(const Request& request);

ServingLoad make_load(const Request& request);

/// All limits except the number of cache blocks.
ServerLimits make_limits(const Request& request);

}  // namespace tilecast
