#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace tilecast {

struct TrainOptions {
  std::vector<std::filesystem::path> data;
  std::filesystem::path output;
  std::vector<std::string> exclude_gpus;
  int epochs = 100;
  int members = 3;  ///< networks in each ensemble
  int hidden = 48;  ///< units of each of the two hidden layers
  uint64_t seed = 1;
  int threads = 2;            ///< the result does not depend on it
  bool leave_one_out = true;  ///< intervals from left-out GPUs; else from held-out rows
  std::string command;        ///< kept in the weights
};

/// What a caller may show while training runs. Called from several threads, one at a time.
struct TrainProgress {
  int finished_epochs = 0;
  int total_epochs = 0;
  EpochReport last;
};
using ShowProgress = std::function<void(const TrainProgress&)>;

/// One line of the table of errors.
struct TrainError {
  std::string gpu;
  std::string op;
  std::string dtype;  ///< precision_name
  std::string software;
  size_t count = 0;
  double mape_percent = 0;
  double median_percent = 0;
  double roofline_mape_percent = 0;  ///< of the baseline, on the same rows
};

struct TrainResult {
  std::vector<std::string> report;   ///< rows left out, and why
  std::vector<TrainError> held_out;  ///< a tenth of the rows, never trained on
  std::vector<TrainError> left_out;  ///< each GPU by networks that never saw it
};

/// Trains all networks and writes kernels.weights, held_out.csv (errors of every tenth epoch) and
/// errors.json into the output folder; checkpoints lie there too until the end, and a run that was
/// killed goes on from them to the same bytes of all three files. One run at a time writes a
/// folder. Throws Error{kInput} where the data hold nothing to learn from, Error{kIo} where the
/// folder cannot be written or another run holds it; folders made in vain are removed.
TrainResult train_weights(const TrainOptions& options, const ShowProgress& progress);

}  // namespace tilecast
