#pragma once

// A graph with its program and its times.

#include <functional>
#include <vector>

#include "api/timing.h"
#include "graph/graph.h"

namespace tilecast {

/// It can be moved but not copied, because the program points into the graph.
struct TimedPass {
  Graph graph;
  Program program;
  std::vector<KernelTime> times;  ///< times of the program's kernels
  Timeline timeline;
  Totals totals;

  TimedPass() = default;
  TimedPass(TimedPass&&) = default;
  TimedPass& operator=(TimedPass&&) = default;
};

struct TimingSetup {
  const Execution& execution;
  const Predictor& predictor;
  const Device& device;
  Conditions conditions;
  /// Replaces the times of collectives, which depend on where the ranks are; may be null.
  std::function<void(const Program&, std::vector<KernelTime>&)> price_collectives = nullptr;

  double host_launch_s() const {
    // The baseline uses the data sheet only.
    return execution.predictor == PredictorKind::kRoofline ? 0 : *execution.host_launch_s;
  }
};

TimedPass time_pass(Graph graph, const TimingSetup& setup);

}  // namespace tilecast
