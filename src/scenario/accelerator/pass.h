#pragma once

// The layers of a pass on an accelerator, for forecasts, pictures and sweeps.

#include <vector>

#include "accelerator/mapper.h"
#include "accelerator/registry.h"
#include "scenario/accelerator/layers.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {

/// A launch that reads or writes the same values as its neighbour, and nobody else does.
struct LinkedLaunch {
  std::string_view op;
  std::optional<KernelLayer> layer;
  bool operator==(const LinkedLaunch&) const = default;
};

/// A launch of a pass, without times. Equal ones are one entry.
struct PassLayer {
  std::string name;  ///< of the first
  std::string_view op;
  std::optional<KernelLayer> layer;  ///< nullopt: for the host
  int64_t bytes = 0;                 ///< read and written
  int64_t macs = 0;
  int64_t elements_bytes = 1;  ///< of an element in the graph
  int64_t count = 1;
  /// The launches before it, each the only reader of the one before, and those after it.
  std::vector<LinkedLaunch> before, after;
  std::string mapping;           ///< that a file of mappings states; "": none
  bool mapping_by_name = false;  ///< the file states it for this layer only
};

/// The layers of one forward pass, each launch on its own. Throws as check_runs_on_accelerators.
std::vector<PassLayer> pass_launches(const ModelRef& model, const Request& request);
/// Whether two launches of equal layers run alike, and are written to a file of mappings as one.
bool same_mapping(const PassLayer& a, const PassLayer& b);
/// Equal launches become one.
std::vector<PassLayer> merge_equal(std::vector<PassLayer> launches);

/// How a dataflow runs a launch: a layer of its own (with a pooling that its store applies), work
/// of the host, or a part of the store of the layer before it.
struct Placed {
  enum class Where : uint8_t { kAccelerator, kHost, kStore };
  Where where = Where::kHost;
  KernelLayer layer;               ///< on the accelerator
  std::vector<std::string> fused;  ///< operators that its store applies
};
Placed place(const PassLayer& layer, const accelerator::Dataflow& flow);

/// Opens an accelerator; throws Error{kInput} also if its dataflow names an operator that does not
/// exist.
accelerator::Design open_design(const std::string& spec, const AcceleratorOptions& options);

/// The object that is busy most, "dependency" if no object is busy for half of the time.
std::string bound_of(const accelerator::Machine& machine, const accelerator::NestTime& time);

/// A layer that the accelerator runs, under its mapping, that of the options, or the mapper's.
/// `times`: known times of this design and of others (nest_times.h).
accelerator::MappedLayer map_pass_layer(const PassLayer& layer, const Placed& placed,
                                        const accelerator::Design& design,
                                        const AcceleratorOptions& options,
                                        accelerator::NestTimes* times = nullptr);

/// The pass on an accelerator.
AcceleratorForecast time_layers(const std::vector<PassLayer>& layers,
                                const accelerator::Design& design,
                                const AcceleratorOptions& options,
                                accelerator::NestTimes* times = nullptr);

}  // namespace tilecast
