// Power over time: of a pass on one GPU by the blocks of its program, of a training step over
// several ranks by its operations, of a server under load by its steps.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/role.h"
#include "scenario/generation/served_power.h"
#include "scenario/internal.h"
#include "scenario/parallel/parallel.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/pass/pass.h"
#include "scenario/power.h"
#include "scenario/timed_pass.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Of one GPU: a point for each block of the program, over all its repetitions. `idle_w`: at the
/// option's clock; lowered to that of the lowest clock that is held.
std::vector<PowerPoint> points_of_blocks(const TimedPass& pass, const BoardPower& board,
                                         double clock_share, double& idle_w) {
  const Program& program = pass.program();
  std::vector<PowerPoint> points;
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    const Span& span = pass.timeline.spans[b];
    PowerSum sum{.clock_share_of_waits = clock_share};
    for (size_t i = 0; i < block.launch_count; ++i) {
      const KernelTime& time = pass.times[program.launches[block.first_launch + i].kernel];
      sum.add(board, time.energy, time.seconds, static_cast<double>(block.repeat));
    }
    const double span_s = span.end_s - span.start_s;
    if (std::max(span_s, sum.busy_s) <= 0) continue;
    const double waits_w = board.idle_w(sum.clock_share());
    idle_w = std::min(idle_w, waits_w);
    const double watts = sum.mean_w(span_s, waits_w);
    points.push_back({span.start_s, std::clamp(watts, waits_w, board.limit_w()),
                      std::string(phase_name(span.phase))});
  }
  return points;
}

/// Of several ranks: the operations of each, and waits between them.
std::vector<RankPower> points_of_operations(const std::vector<StepOperation>& operations) {
  std::map<int64_t, std::map<double, std::pair<double, std::string>>> by_rank;
  // An operation that starts where another ends replaces the wait.
  for (const StepOperation& op : operations)
    if (op.power_w)
      by_rank[op.rank].try_emplace(op.start_s + op.duration_s, *op.idle_w, std::string());
  for (const StepOperation& op : operations)
    if (op.power_w) by_rank[op.rank][op.start_s] = {*op.power_w, op.name};
  std::vector<RankPower> ranks;
  for (auto& [rank, by_time] : by_rank) {
    RankPower power{.rank = rank};
    const double idle_w = by_time.rbegin()->second.first;
    if (by_time.begin()->first > 0) power.points.push_back({0, idle_w, ""});
    for (auto& [start_s, point] : by_time)
      power.points.push_back({start_s, point.first, std::move(point.second)});
    ranks.push_back(std::move(power));
  }
  return ranks;
}

double end_of(const std::vector<StepOperation>& operations) {
  double end_s = 0;
  for (const StepOperation& op : operations) end_s = std::max(end_s, op.start_s + op.duration_s);
  return end_s;
}

PowerTimeline pass_power(const Forecaster& forecaster, const ModelRef& model_ref, const GpuRef& gpu,
                         const Request& request) {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  const auto [used, precision] = checked_pass(model, device, request);
  if (model.recommendation)
    throw Error(ErrorKind::kUnsupported,
                model.name + ": power over a step of a recommendation model is not forecast");
  const PassSetup setup{model, device, used, precision};
  const TimingSetup timing =
      timing_setup(setup, forecaster.impl().predictor(used.execution.predictor));
  const PowerTerms terms = timing.power();
  const std::optional<BoardPower> board = terms.board();
  if (!board)
    throw Error(ErrorKind::kUnsupported, "the power of " + device.id + " is not forecast");
  PowerTimeline timeline{.model = model.name,
                         .gpu = device.id,
                         .gpu_name = device.name,
                         .work = used.mode == Mode::kTraining ? "training step" : "forward pass",
                         .limit_w = board->limit_w(),
                         .idle_w = board->idle_w(terms.clock_share())};
  if (is_parallel(used)) {
    const std::vector<StepOperation> operations = parallel_operations(setup, timing);
    timeline.seconds = end_of(operations);
    for (const StepOperation& op : operations)
      if (op.idle_w) timeline.idle_w = std::min(timeline.idle_w, *op.idle_w);
    timeline.ranks = points_of_operations(operations);
    return timeline;
  }
  const TimedPass pass =
      time_pass(forecaster.impl().passes.get(model_ref, used, precision), timing);
  timeline.seconds = pass.timeline.end_s();
  timeline.ranks = {
      {.rank = 0, .points = points_of_blocks(pass, *board, terms.clock_share(), timeline.idle_w)}};
  return timeline;
}

}  // namespace

PowerTimeline Forecaster::power_timeline(const ModelRef& model, const GpuRef& gpu,
                                         const Request& request) const {
  if (request.energy.best_power_cap)
    throw Error(ErrorKind::kInput,
                "`power-cap-w` best: power over time takes a cap in watts; `forecast` finds the "
                "best one");
  if (request.kind == RequestKind::kGenerate)
    throw Error(ErrorKind::kInput,
                "power over time of text generation is that of a server under load: give `rate`, "
                "`concurrency` or `trace`");
  return request.kind == RequestKind::kServe ? served_power(*this, model, gpu, request)
                                             : pass_power(*this, model, gpu, request);
}

}  // namespace tilecast
