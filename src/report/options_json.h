#pragma once

#include "base/json.h"
#include "tilecast/request.h"

namespace tilecast {

/// The values of a request by the names of their options ("kv_dtype"); an option without a value is
/// left out.
Json options_json(const Request& request);

}  // namespace tilecast
