#pragma once

#include <string>

#include "test_forecaster.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// One pass of a bundled model.
inline Forecast forecast(const std::string& model, const std::string& gpu, const Request& request) {
  return forecaster().forecast(load_model_ref(model), load_gpu_ref(gpu), request);
}

}  // namespace tilecast
