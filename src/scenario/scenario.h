#pragma once

// The scenarios: whatever is asked of a model, a device and a request is an entry of one table.
//
// A scenario says which inquiries it covers, checks them before anything is built, and runs them.
// Commands, tables of forecasts and comparisons ask the table; none of them tells kinds of requests
// apart to forecast them.

#include <optional>
#include <span>
#include <string_view>

#include "scenario/accelerator/shared_layers.h"
#include "scenario/pass/batch_passes.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// What is asked. What several inquiries may share is a pointer; nullptr: nothing is shared.
struct Inquiry {
  const Forecaster& forecaster;
  const ModelRef& model;
  const DeviceRef& device;
  const Request& request;
  Detail detail = Detail::kWarnings;
  BatchPasses* passes = nullptr;   ///< of one thread
  SharedLayers* layers = nullptr;  ///< for accelerators

  /// Not for an accelerator.
  const GpuRef& gpu() const { return std::get<GpuRef>(device); }
  const AcceleratorRef* accelerator() const { return std::get_if<AcceleratorRef>(&device); }
  /// The same with another request, which must outlive it.
  Inquiry with(const Request& other) const {
    return {forecaster, model, device, other, detail, passes, layers};
  }
};

struct Scenario {
  std::string_view name;
  std::string_view what;   ///< it forecasts
  RequestKinds kinds = 0;  ///< of requests; they have the options
  bool (*covers)(const Inquiry&);
  /// Throws Error for a request that contradicts itself or that the scenario does not know. Reads
  /// the request only.
  void (*check)(const Request&);
  /// The request has been checked.
  Result (*run)(const Inquiry&);
};

/// All scenarios. The first that covers an inquiry answers it.
std::span<const Scenario> scenarios();
const Scenario& scenario_of(const Inquiry& inquiry);

/// What `ask` returns.
Result answer(const Inquiry& inquiry);

}  // namespace tilecast
