#pragma once

// One way to ask: a model, what runs it, and a request give a result, whatever the scenario.

#include <string>
#include <variant>

#include "tilecast/accelerator.h"
#include "tilecast/forecast.h"
#include "tilecast/llm.h"

namespace tilecast {

/// An accelerator that its objects describe, as `gpu` names it.
struct AcceleratorRef {
  std::string spec;
  AcceleratorOptions options;
};

/// What runs the model.
using DeviceRef = std::variant<GpuRef, AcceleratorRef>;

/// The accelerator or GPU that `gpu` names, or the GPU of `cluster`; "" is not given. `options`:
/// of an accelerator. Throws as `load_gpu_or_cluster`.
DeviceRef load_device_ref(const std::string& gpu, const std::string& cluster = "",
                          const AcceleratorOptions& options = {});

/// A pass or training step, on one rank or several; text generation or a server; a forward pass on
/// an accelerator.
using Result = std::variant<Forecast, LlmForecast, AcceleratorForecast>;

/// What a result has beside its numbers.
enum class Detail : uint8_t {
  kNumbers,   ///< no search for what would fit or be faster
  kWarnings,  ///< the largest batch where a pass does not fit; precisions that are slower than 16
              ///< bits in text generation
  kRemedies   ///< also what would make a pass fit, the largest batch of one that fits, and what the
              ///< allocator takes where it hardly fits
};

/// Answers a request. A pure function of its arguments and the weights. Throws Error if the model
/// or the device cannot do what is asked.
Result ask(const Forecaster& forecaster, const ModelRef& model, const DeviceRef& device,
           const Request& request, Detail detail = Detail::kWarnings);

}  // namespace tilecast
