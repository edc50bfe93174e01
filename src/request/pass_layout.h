#pragma once

#include "tilecast/request.h"

namespace tilecast {

/// Throws Error{kInput} unless data-parallel ranks and micro-batches divide the batch of a pass,
/// and its pipeline has what its schedule needs, as far as the request alone says.
void check_pass_layout(const Request& request);

}  // namespace tilecast
