#pragma once

#include "base/json.h"
#include "tilecast/request.h"

namespace tilecast {

/// The options of a request with their values, by name ("kv_dtype"). Options without a value are
/// omitted.
Json options_json(const Request& request);

}  // namespace tilecast
