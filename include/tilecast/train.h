#pragma once

// Learning from measurements: new weights for all GPUs, or a calibration of one. Of
// tilecast::train.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tilecast {

/// The data that weights are learned from, and how.
struct TrainOptions {
  std::vector<std::filesystem::path> data;  ///< measurement files or folders
  std::filesystem::path output;             ///< folder to write
  std::vector<std::string> exclude_gpus;    ///< ids or aliases: all their rows are left out
  int trees = 170;                          ///< at most, in each forest
  uint64_t seed = 1;                        ///< the same one gives the same bytes
  int threads = 2;                          ///< the result does not depend on it
  bool leave_one_out = true;  ///< intervals from left-out GPUs; else from held-out rows
  std::string command;        ///< kept in the weights
};

/// Progress that a caller may show while training runs. Called from several threads, one at a time.
struct TrainProgress {
  size_t finished_forests = 0;
  size_t total_forests = 0;
  std::string last;           ///< the forest that was finished last
  double held_out_error = 0;  ///< its mean |log(forecast / measured)| on held-out rows
};
using ShowProgress = std::function<void(const TrainProgress&)>;

/// One line of the table of errors.
struct TrainError {
  std::string gpu;
  std::string op;
  std::string dtype;  ///< or the quantization scheme
  std::string software;
  size_t count = 0;  ///< rows
  double mape_percent = 0;
  double median_percent = 0;
  double roofline_mape_percent = 0;  ///< of the baseline, on the same rows
};

struct TrainResult {
  std::vector<std::string> report;   ///< rows left out, and why
  std::vector<TrainError> held_out;  ///< a tenth of the rows, never trained on
  std::vector<TrainError> left_out;  ///< each GPU by models that never saw it
  /// Each GPU by models that saw no GPU of its architecture.
  std::vector<TrainError> left_out_architecture;
};

/// Trains all forests and writes kernels.weights, held_out.csv (the errors of each forest) and
/// errors.json into the output folder; checkpoints lie there too until the end, and a run that was
/// killed goes on from them to the same bytes of all three files. One run at a time writes a
/// folder. Throws Error{kUnsupported} where XGBoost (Debian: libxgboost0) cannot be loaded,
/// Error{kInput} where the data hold nothing to learn from, Error{kIo} where the folder cannot be
/// written or another run holds it; folders made in vain are removed.
TrainResult train_weights(const TrainOptions& options, const ShowProgress& progress = {});

/// One line of the table of errors of collectives.
struct CollectiveError {
  /// "fitted", "held-out sizes", "held-out ranks" (or nodes), and from 1 MB "left-out GPU" and
  /// "left-out links": all GPUs with links of a generation.
  std::string split;
  std::string gpu;
  std::string op;  ///< kind of collective; "": all of NCCL's
  size_t count = 0;
  double mape_percent = 0;
  double median_percent = 0;
  double p90_percent = 0;
};

struct CollectiveTrainResult {
  std::vector<std::string> report;  ///< rows left out, and why
  std::vector<CollectiveError> errors;
};

/// Fits the curves of collectives to measured ones and writes collectives.json and their errors,
/// collective_errors.json, into the output folder; of the options, `data`, `output`, `exclude_gpus`
/// and `command` count. Takes a minute. Throws Error{kInput} where the data hold no collectives,
/// Error{kIo}.
CollectiveTrainResult train_collectives(const TrainOptions& options);

/// The data that a GPU is calibrated with.
struct CalibrateOptions {
  std::string gpu;                        ///< id or alias, or the path of a device file
  std::vector<std::string> measurements;  ///< files or folders; rows of other GPUs are left out
  std::filesystem::path output;           ///< file to write, which `Forecaster` reads
  std::string weights_folder;             ///< "" for the embedded weights
};

/// Errors of one kind of kernels, in percent, means of its rows.
struct CalibrateError {
  std::string kind;  ///< "matmul", "softmax", …
  size_t rows = 0;   ///< 0: too few to calibrate the kind
  double before_percent = 0;
  double after_percent = 0;  ///< of each row by a calibration that did not see it
};

struct CalibrateResult {
  std::string gpu;                    ///< id
  std::vector<CalibrateError> kinds;  ///< all
  std::vector<std::string> warnings;  ///< what the device file lacks; rows left out, and why
};

/// Learns what a GPU's measured kernels do differently from their forecasts. Throws Error{kInput}
/// where no kind of kernels has the 2 rows that it takes at least, Error{kNotFound} for an unknown
/// GPU, Error{kIo} where the output cannot be written.
CalibrateResult calibrate(const CalibrateOptions& options);

/// Which kernels of a GPU to measure first.
struct SuggestOptions {
  std::string gpu;         ///< as in CalibrateOptions
  size_t count = 0;        ///< kernels to name
  std::string candidates;  ///< CSV of kernels, timed or not, to choose from; "": model-like sizes
  std::string weights_folder;  ///< "" for the embedded weights
};

/// The kernels that tell most: one after the other, that which narrows the forecasts of all
/// candidates most, by the model that `calibrate` learns with. As a CSV that `calibrate` reads once
/// its column latency_s is filled in; rows of `candidates` as they stand there. At most 2,000
/// candidates, drawn evenly, are weighed. Throws Error{kNotFound} for an unknown GPU, Error{kInput}
/// where the candidates hold no kernel of the GPU that has a law.
std::string suggest_kernels(const SuggestOptions& options);

}  // namespace tilecast
