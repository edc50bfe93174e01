#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tilecast/train.h"
#include "train/fold.h"
#include "train/job_runner.h"

namespace tilecast {

/// A device residual to learn: of a device, in a fold's network.
struct PlannedResidual {
  Fold* fold = nullptr;
  size_t net = 0;
  size_t index = 0;   ///< into Net::residuals
  size_t device = 0;  ///< into TrainingData::devices
  /// What its networks learn from; set when the base models are learned.
  NetRows train, held_out;
  GrowingPairs pairs;

  DeviceResidual& residual() const { return fold->weights.nets[net].residuals[index]; }
};

/// What a training run learns: folds of the rows, and in each the base models and
/// the device residuals.
struct TrainingPlan {
  TrainOptions options;
  std::filesystem::path checkpoints;  ///< folder
  TrainingData data;
  std::array<bool, kNetCount> enough{};  ///< whether there are rows to learn each network from
  /// The first leaves no GPU out: its weights are the result. The others only measure errors.
  std::vector<std::unique_ptr<Fold>> folds;
  std::vector<PlannedResidual> residuals;  ///< in the folds' order
  size_t networks = 0;                     ///< to learn

  /// A fold learns what it is judged on: the networks that its left-out device has rows of.
  bool learns(const Fold& fold, size_t net) const;
};

/// Reads the measurements, makes the folds and decides which residuals are learned. The kinds
/// with too few rows are named in data.report. Throws Error{kInput} where no kind has enough.
TrainingPlan plan_training(const TrainOptions& options, const std::filesystem::path& checkpoints);

/// Jobs of the base models. They and those below point into the plan.
std::vector<Job> base_model_jobs(TrainingPlan& plan);

/// Jobs of the device residuals, which learn what the base models leave: to be made when those are
/// learned.
std::vector<Job> residual_jobs(TrainingPlan& plan);

}  // namespace tilecast
