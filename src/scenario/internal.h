#pragma once

// The content of the façade's handles, shared by the sources of this folder.

#include <memory>

#include "devices/device.h"
#include "devices/device_numbers.h"
#include "importers/model.h"
#include "predict/predictor.h"
#include "scenario/pass/pass_cache.h"
#include "tilecast/forecast.h"

namespace tilecast {

/// Throws Error{kInput} for an unknown predictor.
PredictorKind parse_predictor(const std::string& name);

struct ModelRef::Content {
  Model model;
};

struct GpuRef::Content {
  Device device;
};

/// A device that was made of another one, as a device to ask about.
GpuRef ref_of_device(Device device);

/// The GPU with other numbers than its data sheet's; see device_numbers.h.
GpuRef with_numbers(const GpuRef& gpu, const GivenNumbers& numbers);

struct Forecaster::Impl {
  Weights weights;
  std::unique_ptr<Predictor> learned;
  std::unique_ptr<Predictor> roofline;
  mutable PassCache passes;

  const Predictor& predictor(PredictorKind kind) const {
    return kind == PredictorKind::kRoofline ? *roofline : *learned;
  }
};

}  // namespace tilecast
