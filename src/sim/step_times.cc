#include "sim/step_times.h"

#include <fmt/format.h>

#include "sim/busy_time.h"

namespace tilecast {

std::vector<StageTimes> stage_times(const StepOperations& operations, int64_t stages, int64_t width,
                                    int64_t replica, double seconds) {
  const auto count = static_cast<size_t>(stages);
  std::vector<BusyTime> computing(count), communicating(count);
  std::vector<double> communication_s(count, 0), inner_s(count, 0);
  std::vector<double> forward_s(count, 0), optimizer_s(count, 0);
  for (size_t i = 0; i < operations.runs.size(); ++i) {
    const StepLabel& label = operations.labels[i];
    const EventGraph::Run& run = operations.runs[i];
    if (label.replica >= 0 && label.replica != replica) continue;
    for (const int64_t stage : {label.stage, label.other_stage}) {
      if (stage < 0) continue;
      const auto s = static_cast<size_t>(stage);
      (label.communication() ? communicating : computing)[s].add(run.start_s, run.end_s);
      const double run_s = run.end_s - run.start_s;
      if (label.communication()) {
        communication_s[s] += run_s;
        continue;
      }
      // Links that are shared make a pass longer by its collectives.
      const double alone_s = operations.graph.duration_s(static_cast<EventGraph::Op>(i));
      const double longer_s = run_s > alone_s * (1 + 1e-12) ? run_s - alone_s : 0;
      inner_s[s] += label.inner_communication_s + longer_s;
      if (label.work == StepWork::kForward)
        forward_s[s] += run_s - longer_s - label.inner_communication_s;
      if (label.work == StepWork::kOptimizer) optimizer_s[s] += run_s;
    }
  }
  std::vector<StageTimes> times;
  for (size_t s = 0; s < count; ++s) {
    // Collectives of the width run once for each of its ranks, at the same time.
    StageTimes stage{
        .compute_s = computing[s].seconds() - inner_s[s],
        .forward_s = forward_s[s],
        .optimizer_s = optimizer_s[s],
        .communication_s = inner_s[s] + communication_s[s] / static_cast<double>(width)};
    stage.exposed_communication_s = inner_s[s] + communicating[s].seconds_outside(computing[s]);
    // Sums of many times: what is less than a millionth of a millionth is rounding.
    const double rest = seconds - stage.compute_s - stage.exposed_communication_s;
    stage.bubble_s = rest > 1e-12 * seconds ? rest : 0;
    times.push_back(stage);
  }
  return times;
}

std::vector<StepEvent> step_events(const StepOperations& operations,
                                   std::span<const int64_t> replicas) {
  const std::vector<EventGraph::Run>& runs = operations.runs;
  std::vector<bool> critical(runs.size(), false);
  for (const EventGraph::Op op : EventGraph::critical_path(runs))
    critical[static_cast<size_t>(op)] = true;
  std::vector<StepEvent> events;
  for (size_t i = 0; i < runs.size(); ++i) {
    const StepLabel& label = operations.labels[i];
    for (const int64_t stage : {label.stage, label.other_stage}) {
      if (stage < 0) continue;
      for (size_t r = 0; r < replicas.size(); ++r) {
        if (label.replica >= 0 && label.replica != static_cast<int64_t>(r)) continue;
        events.push_back({.name = fmt::format("{} {}", label.what, label.pass.microbatch),
                          .stream = label.stream,
                          .stage = stage,
                          .replica = replicas[r],
                          .start_s = runs[i].start_s,
                          .duration_s = runs[i].end_s - runs[i].start_s,
                          .critical = critical[i]});
      }
    }
  }
  return events;
}

}  // namespace tilecast
