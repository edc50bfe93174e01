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

/// A correction to learn: of a device, in a fold's network.
struct PlannedCorrection {
  Fold* fold = nullptr;
  size_t net = 0;
  size_t index = 0;   ///< into Net::corrections
  size_t device = 0;  ///< into TrainingData::devices
  /// What its networks learn from; set when the laws are learned.
  NetRows train, held_out;
  GrowingPairs pairs;

  Correction& correction() const { return fold->weights.nets[net].corrections[index]; }
};

/// What a training run learns: folds of the rows, and in each the laws that all devices share and
/// the corrections of single devices.
struct TrainingPlan {
  TrainOptions options;
  std::filesystem::path checkpoints;  ///< folder
  TrainingData data;
  std::array<bool, kNetCount> enough{};  ///< whether there are rows to learn each network from
  /// The first leaves no GPU out: its weights are the result. The others only measure errors.
  std::vector<std::unique_ptr<Fold>> folds;
  std::vector<PlannedCorrection> corrections;  ///< in the folds' order
  size_t networks = 0;                         ///< to learn

  /// A fold learns what it is judged on: the networks that its left-out device has rows of.
  bool learns(const Fold& fold, size_t net) const;
};

/// Reads the measurements, makes the folds and decides which corrections are learned. The kinds
/// with too few rows are named in data.report. Throws Error{kInput} where no kind has enough.
TrainingPlan plan_training(const TrainOptions& options, const std::filesystem::path& checkpoints);

/// Jobs of the laws that all devices share. They and those below point into the plan.
std::vector<Job> law_jobs(TrainingPlan& plan);

/// Jobs of the corrections, which learn what the laws leave: to be made when the laws are learned.
std::vector<Job> correction_jobs(TrainingPlan& plan);

}  // namespace tilecast
