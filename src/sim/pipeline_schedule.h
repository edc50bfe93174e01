#pragma once

// In which order a stage of a pipeline runs the passes of its micro-batches.

#include <cstdint>
#include <vector>

#include "tilecast/choices.h"

namespace tilecast {

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t stages = 1;
  int64_t chunks = 1;  ///< parts of the model on each stage; above 1 only if interleaved
  int64_t microbatches = 1;
};

/// One pass of one micro-batch through one part of a stage. Part c of stage s is number
/// c · stages + s of the model.
struct PipelinePass {
  bool backward = false;
  int64_t chunk = 0;
  int64_t microbatch = 0;
  bool operator==(const PipelinePass&) const = default;
};

/// The passes of a stage in their order. Sources: GPipe (Huang et al. 2019); 1F1B and interleaved:
/// Megatron-LM, megatron/core/pipeline_parallel/schedules.py. The interleaved schedule needs a
/// number of micro-batches that the stages divide.
std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, int64_t stage);

/// Forward passes of a stage before its first backward pass, but for one that stands next to it.
int64_t forward_ahead(const PipelineShape& shape, int64_t stage);
/// How many of the first `passes` forward passes of a stage are of each of its parts.
std::vector<int64_t> forward_passes(const PipelineShape& shape, int64_t passes);

/// For each part of the stage: the most micro-batches whose forward pass has run on it and whose
/// backward pass has not. Their activations are in memory.
std::vector<int64_t> most_in_flight(const PipelineShape& shape, int64_t stage);

}  // namespace tilecast
