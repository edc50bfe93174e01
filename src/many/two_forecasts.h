#pragma once

#include "base/json.h"

namespace tilecast {

/// Whether a document is a forecast of a model on a GPU, as --format json writes it.
bool is_forecast(const Json& json);

}  // namespace tilecast
