#pragma once

// The vision tower beside single requests or the requests of a static batch.

#include <optional>
#include <vector>

#include "scenario/generation/encode_workers.h"

namespace tilecast {

/// The runs for the images of all prompts.
struct TowerRuns {
  VisionForecast vision;
  std::vector<KernelForecast> kernels;
  Interval seconds;  ///< until the servers have what they made; 0: prompts have no images
};

/// nullopt where the model has no tower that is forecast. `encoders`: the workers that have it;
/// nullptr: the servers themselves. `names`: of the kernels.
std::optional<TowerRuns> tower_runs(const ServedModel& served, const EncodeWorkers* encoders,
                                    TextArena& names);

/// The kernels of one run on an encode worker; names as above.
std::vector<KernelForecast> kernels_of_run(const EncodeWorkers& encoders, int64_t images,
                                           TextArena& names);

}  // namespace tilecast
