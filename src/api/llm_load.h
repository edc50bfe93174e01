#pragma once

// From the request for a continuously batching server to what its scheduler sees.

#include <cstdint>

#include "sim/serving.h"
#include "tilecast/request.h"

namespace tilecast {

/// The request with one prompt and one output, the means of what is asked, and with the software
/// that runs it. The lengths of a static batch are as they were.
Request typical_request(const Request& request);

/// Tokens of the longest request, prompt and output together.
int64_t longest_request(const Request& request);

ServingLoad make_load(const Request& request);

/// All but the blocks of the cache.
ServerLimits make_limits(const Request& request);

}  // namespace tilecast
