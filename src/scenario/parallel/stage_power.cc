#include "scenario/parallel/stage_power.h"

#include <algorithm>
#include <array>

#include "scenario/power.h"

namespace tilecast {
namespace {

/// A phase of all parts of a stage: its kernels, and the time of its passes.
struct PhaseWork {
  PowerSum sum;
  double seconds = 0;
};

/// An operation also has the waits for the host, in which the board idles.
double mean_watts(const PhaseWork& work, const BoardPower& board, double idle_w) {
  if (std::max(work.seconds, work.sum.busy_s) <= 0) return idle_w;
  return std::clamp(work.sum.mean_w(work.seconds, idle_w), idle_w, board.limit_w());
}

}  // namespace

std::optional<double> StageWatts::of(std::string_view operation) const {
  const std::string_view word = operation.substr(0, operation.find(' '));
  if (word == phase_name(Phase::kForward)) return forward_w;
  if (word == phase_name(Phase::kBackward)) return backward_w;
  if (word == phase_name(Phase::kOptimizer)) return optimizer_w;
  return std::nullopt;
}

std::vector<StageWatts> stage_watts(const std::vector<const ModelPart*>& parts,
                                    const PipelineShape& pipeline, const PowerTerms& terms) {
  const std::optional<BoardPower> board = terms.board();
  if (!board) return {};
  constexpr size_t kPhases = 3;
  std::vector<std::array<PhaseWork, kPhases>> works(static_cast<size_t>(pipeline.stages));
  double clock_share = 1;
  for (size_t number = 0; number < parts.size(); ++number) {
    const TimedPass& pass = parts[number]->pass;
    const Program& program = pass.program();
    auto& of_stage =
        works[static_cast<size_t>(stage_of_part(pipeline, static_cast<int64_t>(number)))];
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizer})
      of_stage.at(static_cast<size_t>(phase)).seconds += pass.timeline.phase_s(phase);
    for (const Launch& launch : program.launches) {
      const KernelTime& time = pass.times[launch.kernel];
      clock_share = std::min(clock_share, time.energy.clock_share);
      of_stage.at(static_cast<size_t>(launch.node->phase))
          .sum.add(*board, time.energy, time.seconds, static_cast<double>(program.count(launch)));
    }
  }
  const double idle_w = board->idle_w(clock_share);
  std::vector<StageWatts> watts;
  for (const auto& [forward, backward, optimizer] : works)
    watts.push_back({mean_watts(forward, *board, idle_w), mean_watts(backward, *board, idle_w),
                     mean_watts(optimizer, *board, idle_w), idle_w});
  return watts;
}

}  // namespace tilecast
