#pragma once

// A graph with its program and its times.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "scenario/host_work.h"
#include "scenario/pass/pass.h"
#include "scenario/pass/pass_work.h"
#include "scenario/power.h"
#include "scenario/timing.h"

namespace tilecast {

struct TimedPass {
  std::shared_ptr<const PassWork> work;
  std::vector<KernelTime> times;  ///< times of the program's kernels
  Timeline timeline;
  Totals totals;

  const Graph& graph() const { return work->graph; }
  const Program& program() const { return work->program; }
};

struct TimingSetup {
  const Execution& execution;
  const Predictor& predictor;
  const Device& device;
  Conditions conditions;
  std::optional<double> power_cap_w;
  HostRates host;
  /// Replaces the times of collectives, which depend on where the ranks are; may be null.
  std::function<void(const Program&, std::vector<KernelTime>&)> price_collectives = nullptr;

  PowerTerms power() const { return {device, predictor.laws().power, execution, power_cap_w}; }
  double host_launch_s() const {
    // The baseline uses the data sheet only.
    return execution.predictor == PredictorKind::kRoofline ? 0 : *execution.host_launch_s;
  }
};

/// The setup of a pass; it must outlive the result.
TimingSetup timing_setup(const PassSetup& setup, const Predictor& predictor);

/// Runs the kernels of a pass with their times, at the clock that the board holds.
void run_kernels(TimedPass& pass, const TimingSetup& setup);

TimedPass time_pass(std::shared_ptr<const PassWork> work, const TimingSetup& setup);

}  // namespace tilecast
