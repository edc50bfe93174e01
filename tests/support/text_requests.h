#pragma once

#include <string>

#include "test_forecaster.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// A static batch, unless the request is of another kind.
inline GenerationForecast forecast_text(const std::string& model, const std::string& gpu,
                                        Request request) {
  if (request.kind == RequestKind::kPass) request.kind = RequestKind::kGenerate;
  return forecast_generation(forecaster(), load_model_ref(model), load_gpu_ref(gpu), request);
}

}  // namespace tilecast
