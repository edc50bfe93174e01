#pragma once

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tilecast/learn.h"
#include "train/interval_fit.h"
#include "train/kind_table.h"

namespace tilecast {

/// A forest to learn: what a class's devices do in one kind of kernels with one software.
struct ForestJob {
  KernelKind kind{};
  KernelClass of;
  Software software{};
  /// A device of the class whose rows are not learned from: the forest only measures errors. Else
  /// it is part of the result.
  std::optional<size_t> left_out;
  std::set<size_t> devices;  ///< that it learns from
  std::string name;
  SoftwareForest learned;
  size_t rows = 0;
  double train_error = 0;     ///< mean |log(forecast / measured)|
  double held_out_error = 0;  ///< the same on held-out rows
};

/// Shares of left-out rows that the intervals of a kind hold.
struct FittedInterval {
  KernelKind kind{};
  std::string_view left_out;  ///< "vendor", "architecture" or "gpu"
  UnseenFit fit;
};

/// The forests that a training run learns.
struct WeightsJob {
  TrainOptions options;
  std::filesystem::path checkpoints;  ///< folder
  TrainingData data;
  Weights weights;  ///< the result; its classes get their forests from `forests` at the end
  std::array<KindTable, kKernelKindCount> tables;
  std::vector<ForestJob> forests;
  std::vector<FittedInterval> intervals;  ///< found at the end (judge.h)

  /// Index of the device with this id, which the data hold.
  size_t device_index(const std::string& id) const;
};

/// Reads the measurements and decides which forests are learned. The kinds with too few rows are
/// named in data.report. Throws Error{kInput} where no kind has enough.
WeightsJob weights_job(const TrainOptions& options, const std::filesystem::path& checkpoints);

/// Learns a run's forest, or reads it from its checkpoint.
void learn_forest(const WeightsJob& job, ForestJob& planned);

/// The model of a kind with the forests of the run: of all devices, or without one device or
/// without one architecture, whose rows and classes it then does not know.
struct LeftOut {
  std::optional<size_t> device;
  std::optional<Architecture> architecture;
};
KindModel assembled(const WeightsJob& job, KernelKind kind, const LeftOut& left_out);

}  // namespace tilecast
