#pragma once

// Converts a request for a server into the input of its scheduler.

#include <cstdint>

#include "devices/device.h"
#include "graph/graph.h"
#include "sim/serving.h"
#include "tilecast/request.h"

namespace tilecast {

/// The request with the mean prompt and output length and with the software filled in. The lengths
/// of a static batch stay unchanged.
Request typical_request(const Request& request);

/// Tokens of the longest request: prompt plus output.
int64_t longest_request(const Request& request);

/// Number of prompts of a static batch in one prefill step.
int64_t prefill_sequences(const Request& request, int64_t batch);

/// `image_tokens`: of one of the images that each prompt has; 0: they have none.
ServingLoad make_load(const Request& request, int64_t image_tokens = 0);

/// The load of the experts of a model: as requested, else `kServedSkew` where a token chooses one
/// of many and no copies of busy experts are kept (DeepEP).
int64_t served_skew(const Request& request, const Graph& modules);

/// The request with the software's limits where it states none.
Request with_limits(const Request& request, const Device& device);

/// All limits except the number of cache blocks, for a request with limits.
ServerLimits make_limits(const Request& request);

}  // namespace tilecast
