#pragma once

// The layers of a pass on an accelerator, for forecasts, pictures and sweeps.

#include <vector>

#include "accelerator/mapper.h"
#include "accelerator/registry.h"
#include "api/accelerator_layers.h"
#include "tilecast/accelerator.h"

namespace tilecast {

/// A launch of a pass, without times.
struct PassLayer {
  std::string name;
  std::string_view op;
  std::optional<KernelLayer> layer;  ///< nullopt: for the host
  int64_t bytes = 0;                 ///< read and written
  int64_t elements_bytes = 1;        ///< of an element in the graph
  int64_t count = 1;
};

/// Throws Error{kUnsupported} for a request that is not a forward pass, or that has options which
/// accelerators do not know.
void check_runs_on_accelerators(const Request& request);

/// The layers of one forward pass; equal ones are one entry. Throws as above.
std::vector<PassLayer> pass_layers(const ModelRef& model, const Request& request);

/// What is busy most, "dependency" if no object is busy for half of the time.
std::string bound_of(const accelerator::Machine& machine, const accelerator::NestTime& time);

/// A layer that the accelerator runs, under the mapping of the options or the mapper's.
accelerator::MappedLayer map_pass_layer(const PassLayer& layer, const accelerator::Design& design,
                                        const AcceleratorOptions& options);

/// The pass on an accelerator.
AcceleratorForecast time_layers(const std::vector<PassLayer>& layers,
                                const accelerator::Design& design,
                                const AcceleratorOptions& options);

}  // namespace tilecast
