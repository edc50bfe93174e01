#include "scenario/generation/tower_runs.h"

#include <utility>

#include "base/checked.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/served_stages.h"

namespace tilecast {
namespace {

/// Kernels of one run. Runs of layers repeat the same ones, which share a row.
std::vector<KernelForecast> rows_of(const TimedStep& run, TextArena& names) {
  std::vector<KernelForecast> rows;
  add_rows(rows, describe_events(run.timeline, run.program, run.times, names));
  return rows;
}

class AddedRuns {
 public:
  AddedRuns(const ServedModel& served, const TowerSteps& tower, TextArena& names, TowerRuns& to)
      : served_(served), tower_(tower), names_(names), to_(to) {}

  /// So many images, so many times.
  void add(int64_t images, int64_t steps) {
    for (const auto& [together, runs] : tower_.runs(images)) {
      const TimedStep run = time_tower(served_, tower_, together);
      const int64_t times = checked_multiply(runs, steps);
      VisionForecast& vision = to_.vision;
      vision.time = sum(vision.time, run.totals.seconds, static_cast<double>(times));
      std::vector<KernelForecast> rows = rows_of(run, names_);
      if (vision.step.kernels.empty())
        vision.step = describe_step(served_, "vision tower", run, rows);
      for (KernelForecast& row : rows) {
        row.phase = "vision";
        row.count = checked_multiply(row.count, times);
      }
      add_rows(to_.kernels, std::move(rows));
    }
  }

 private:
  const ServedModel& served_;
  const TowerSteps& tower_;
  TextArena& names_;
  TowerRuns& to_;
};

}  // namespace

std::optional<TowerRuns> tower_runs(const ServedModel& served, const EncodeWorkers* encoders,
                                    TextArena& names) {
  const TowerSteps* tower = encoders != nullptr ? &encoders->tower()
                            : served.tower      ? &*served.tower
                                                : nullptr;
  if (tower == nullptr) return std::nullopt;
  TowerRuns result;
  VisionForecast& v = result.vision;
  v.parameters = tower->parameters();
  v.weights_bytes = tower->weights_bytes();
  const Request& request = served.asked;
  const std::optional<VisionTower::Image> image = image_of(served.model, request);
  if (!image) return result;
  v.images = request.images;
  v.image_side = image->side;
  v.image_tokens = image->tokens;
  v.prompt_tokens = request.images * image->tokens;
  // The tower runs for the images of each prefill step.
  const int64_t batch = served.sequences_of_rank(request.batch);
  const int64_t prompts = prefill_sequences(request, batch);
  const int64_t each = encoders != nullptr ? encoders->largest_share() : request.images;
  AddedRuns runs(served, *tower, names, result);
  v.together = tower->together(checked_multiply(prompts, each));
  runs.add(checked_multiply(prompts, each), batch / prompts);
  if (const int64_t rest = batch % prompts; rest > 0) runs.add(checked_multiply(rest, each), 1);
  result.seconds = v.time;
  if (encoders != nullptr) {
    const double moved = encoders->transfer_s(each);
    result.seconds = sum(result.seconds, {moved, moved, moved}, 1);
  }
  return result;
}

std::vector<KernelForecast> kernels_of_run(const EncodeWorkers& encoders, int64_t images,
                                           TextArena& names) {
  return rows_of(encoders.time(images), names);
}

}  // namespace tilecast
