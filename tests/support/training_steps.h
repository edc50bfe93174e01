#pragma once

#include <string>
#include <string_view>

#include "base/embedded.h"
#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// The text of a bundled cluster.
inline std::string cluster_text(std::string_view id) {
  for (const EmbeddedFile& file : embedded_files("clusters/")) {
    if (file.path.find(id) != std::string_view::npos) return std::string(file.content);
  }
  return "";
}

/// A training step of 1,024 tokens a sequence, as published times were measured.
inline Request training(int64_t batch = 8) {
  Request request;
  request.mode = Mode::kTraining;
  request.batch = batch;
  request.seq = 1024;
  return as_published(request);
}

/// On A100s.
inline Forecast forecast(const Request& request, const std::string& model = "gpt2_large") {
  return forecaster().forecast(load_model_ref(model), load_gpu_ref("nvidia-a100-sxm4-80gb"),
                               request);
}

}  // namespace tilecast
