#pragma once

// One step of a server on all its pipeline stages.

#include <string>
#include <vector>

#include "scenario/generation/step_timer.h"

namespace tilecast {

/// a + times · b. Both times come from the same models, so their errors are assumed to be fully
/// correlated.
Interval sum(const Interval& a, const Interval& b, double times);

class StagedStep {
 public:
  /// `launch` as in time_step.
  StagedStep(const ServedModel& served, const std::vector<StepGroup>& groups, StepLaunch launch);

  /// Time of one batch through all stages, sends included.
  Interval through() const;
  /// Time of the stage that takes longest.
  Interval slowest() const;
  /// Until each of `batches` equal batches has gone through all stages once: no stage runs two at a
  /// time, and a batch starts again when it has ended.
  Interval round(int64_t batches) const;
  double send_s() const;
  double host_wait_s() const;

  /// The kernels of a rank of each stage; identical ones share a row. Names are stored in `names`.
  std::vector<KernelForecast> rows(TextArena& names) const;
  /// Facts of the step for a report. `rows`: its kernels.
  StepForecast describe(const std::string& name, std::vector<KernelForecast> rows) const;

 private:
  const ServedModel& served_;
  std::vector<TimedStep> parts_;
};

/// Adds kernels; identical kernels share a row.
void add_rows(std::vector<KernelForecast>& rows, std::vector<KernelForecast> more);

/// Facts of one step of the model or its vision tower, for a report; no time of its own.
StepForecast describe_step(const ServedModel& served, const std::string& name, const TimedStep& s,
                           std::vector<KernelForecast> rows);

}  // namespace tilecast
