#pragma once

// Results of a simulated step: times of the stages, and operations for traces.

#include <span>

#include "sim/events.h"
#include "sim/training_step.h"

namespace tilecast {

/// Kind of a compute operation.
enum class StepWork : uint8_t { kForward, kBackward, kCopies, kOptimizer };

/// Purpose of an operation, and the rank that it keeps busy.
struct StepLabel {
  const char* what;
  StepStream stream;
  int64_t stage, replica;  ///< replica -1: all
  PipelinePass pass = {};
  int64_t other_stage = -1;             ///< that takes part too
  double inner_communication_s = 0;     ///< of collectives inside a pass
  StepWork work = StepWork::kBackward;  ///< of compute operations

  bool communication() const { return stream != StepStream::kCompute; }
};

struct StepOperations {
  const EventGraph& graph;
  const std::vector<EventGraph::Run>& runs;
  const std::vector<StepLabel>& labels;  ///< by operation
};

/// Times of the stages of one simulated replica, whose step takes `seconds`. `width`: ranks of a
/// stage that are simulated.
std::vector<StageTimes> stage_times(const StepOperations& operations, int64_t stages, int64_t width,
                                    int64_t replica, double seconds);

/// `replicas`: the number of each simulated replica. A collective of several replicas stands on
/// each of them.
std::vector<StepEvent> step_events(const StepOperations& operations,
                                   std::span<const int64_t> replicas);

}  // namespace tilecast
