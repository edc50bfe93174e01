#pragma once

// What the façade's handles hold; shared by the sources of this folder.

#include <memory>

#include "devices/device.h"
#include "importers/model.h"
#include "predict/predictor.h"
#include "tilecast/forecast.h"

namespace tilecast {

struct LlmOptions;

/// Throw Error{kInput} where a field holds what its option would refuse on the command line.
void check_predictor(const std::string& name);
void check_values(const ForecastOptions& options);
void check_values(const LlmOptions& options);
void check_values(const KernelOptions& options);

struct ModelRef::Content {
  Model model;
};

struct GpuRef::Content {
  Device device;
};

struct Forecaster::Impl {
  Weights weights;
  std::unique_ptr<Predictor> learned;
  std::unique_ptr<Predictor> roofline;

  const Predictor& predictor(const std::string& name) const {
    return name == "roofline" ? *roofline : *learned;
  }
};

}  // namespace tilecast
