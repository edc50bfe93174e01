#pragma once

// Learning from measurements: new weights, calibrations of one GPU, errors of forecasts.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast {

/// Errors over all measurements of one GPU, operator, dtype and software.
struct EvaluationRow {
  std::string gpu;
  std::string op;
  std::string dtype;
  std::string software;  ///< whose kernels were measured
  int64_t count = 0;
  double mape_percent = 0;
  double median_percent = 0;
  double p90_percent = 0;
  double bias_ratio = 0;        ///< geometric mean of forecast / measured
  double coverage_percent = 0;  ///< measurements inside [low, high]

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("EvaluationRow", "Errors of one GPU, operator and dtype.");
    field("gpu", "", "id of the GPU", &EvaluationRow::gpu);
    field("op", "", "operator", &EvaluationRow::op);
    field("dtype", "", "of the operands", &EvaluationRow::dtype);
    field("software", "", "software whose kernels were measured", &EvaluationRow::software);
    field("count", "", "number of measurements", &EvaluationRow::count);
    field("mape_percent", "%", "mean absolute error", &EvaluationRow::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &EvaluationRow::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors",
          &EvaluationRow::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured", &EvaluationRow::bias_ratio);
    field("coverage_percent", "%", "share of measurements inside the 80 % interval",
          &EvaluationRow::coverage_percent);
  }
};

/// Measured cycles of layers under given mappings: the files of shared/data/accelerators. nullopt
/// if the file has another layout.
struct AcceleratorEvaluation {
  std::string file, accelerator;
  int64_t rows = 0, left_out = 0;
  double mape_percent = 0, median_percent = 0, p90_percent = 0, bias_ratio = 0;
  /// Mean over layers with five mappings or more; over all rows where there are none.
  std::optional<double> rank_correlation;
  std::vector<EvaluationRow> by_operator;
  /// Leave one layer out: `fitted` parameters are fitted again without each layer.
  double held_out_mape_percent = 0, held_out_median_percent = 0;
  std::vector<std::string> fitted;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorEvaluation", "Forecast against measured cycles of one file.");
    field("file", "", "its name", &AcceleratorEvaluation::file);
    field("gpu", "", "id of the accelerator", &AcceleratorEvaluation::accelerator);
    field("count", "", "rows that were compared", &AcceleratorEvaluation::rows);
    field("left_out", "", "rows that were not", &AcceleratorEvaluation::left_out);
    field("mape_percent", "%", "mean absolute error", &AcceleratorEvaluation::mape_percent);
    field("median_percent", "%", "median of the absolute errors",
          &AcceleratorEvaluation::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors",
          &AcceleratorEvaluation::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured",
          &AcceleratorEvaluation::bias_ratio);
    field("rank_correlation", "",
          "Spearman's: mean over layers with five mappings or more; where there are none, over all "
          "rows; null: there are fewer than two",
          &AcceleratorEvaluation::rank_correlation);
    field("held_out_mape_percent", "%",
          "the same with the fitted parameters fitted again without each layer",
          &AcceleratorEvaluation::held_out_mape_percent);
    field("held_out_median_percent", "%",
          "the same with the fitted parameters fitted again without each layer",
          &AcceleratorEvaluation::held_out_median_percent);
    field("fitted", "", "parameters that were fitted", &AcceleratorEvaluation::fitted);
  }
};

struct AcceleratorEvaluations {
  std::vector<AcceleratorEvaluation> accelerators;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("AcceleratorEvaluations", "Errors of accelerators.");
    field("schema_version", "", "of this schema", [](const AcceleratorEvaluations&) { return 1; });
    field("rows", "", "errors by accelerator and operator; of cycles, which have no interval",
          [](const AcceleratorEvaluations& x) {
            std::vector<EvaluationRow> rows;
            for (const AcceleratorEvaluation& file : x.accelerators)
              rows.insert(rows.end(), file.by_operator.begin(), file.by_operator.end());
            return rows;
          });
    field("accelerators", "", "one entry for each file", &AcceleratorEvaluations::accelerators);
  }
};

/// `accelerator`: what they were measured on; "": that whose id begins the name of the file.
std::optional<std::vector<AcceleratorEvaluation>> evaluate_accelerators(
    const std::string& path, const std::string& accelerator = "");

/// Choice and times of solvers against those that MIOpen's find databases list.
struct TuneErrors {
  std::string rows;  ///< "all"; "held-out layers": those that the weights were not trained on
  int64_t problems = 0;
  int64_t problems_with_a_choice = 0;  ///< that list two solvers or more, one of them ranked
  /// Time of the listed solver that is ranked first over that of the fastest, geometric mean.
  double slow_down_ratio = 1;
  double within_5_percent = 0;  ///< share of choices at most 5 % slower than the fastest
  int64_t times = 0;
  double mape_percent = 0, median_percent = 0;  ///< of the times
  double first_listed_percent = 0;              ///< how often the first of all is listed
  int64_t unranked_problems = 0;                ///< none of whose solvers the program offers

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TuneErrors", "Choice and times of solvers against those that MIOpen lists.");
    field("rows", "", "all, or held-out layers: those that the weights were not trained on",
          &TuneErrors::rows);
    field("problems", "", "convolutions", &TuneErrors::problems);
    field("problems_with_a_choice", "", "that list two solvers or more, of which one was ranked",
          &TuneErrors::problems_with_a_choice);
    field("slow_down_ratio", "",
          "time of the listed solver that is ranked first over that of the fastest, geometric mean",
          &TuneErrors::slow_down_ratio);
    field("within_5_percent", "", "share of choices at most 5 % slower than the fastest",
          &TuneErrors::within_5_percent);
    field("times", "", "rows with a time", &TuneErrors::times);
    field("mape_percent", "%", "mean absolute error of the times", &TuneErrors::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &TuneErrors::median_percent);
    field("first_listed_percent", "%", "how often the first of all is listed",
          &TuneErrors::first_listed_percent);
    field("unranked_problems", "", "none of whose solvers the program offers",
          &TuneErrors::unranked_problems);
  }
};

/// Files of one GPU each.
struct TuneEvaluation {
  std::string file, gpu;
  bool extrapolated = false;  ///< no GPU of its architecture was trained on
  std::vector<TuneErrors> errors;
  int64_t unknown_rows = 0;  ///< of solvers that the program does not know; they do not count
  std::vector<std::string> unknown_solvers;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TuneEvaluation", "Errors of one file.");
    field("file", "", "its name", &TuneEvaluation::file);
    field("gpu", "", "id of the GPU", &TuneEvaluation::gpu);
    field("extrapolated", "", "no GPU of its architecture was trained on",
          &TuneEvaluation::extrapolated);
    field("errors", "", "over all rows, and over those held out", &TuneEvaluation::errors);
    field("unknown_rows", "", "of solvers that the program does not know",
          &TuneEvaluation::unknown_rows);
    field("unknown_solvers", "", "their names", &TuneEvaluation::unknown_solvers);
  }
};

struct TuneEvaluations {
  std::vector<TuneEvaluation> tuning;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TuneEvaluations", "Errors of tuning without a search.");
    field("schema_version", "", "of this schema", [](const TuneEvaluations&) { return 1; });
    field("tuning", "", "one entry for each file", &TuneEvaluations::tuning);
  }
};

/// Reads find_ARCH.csv (.xz), or all of a folder: one row a convolution and solver
/// (docs/explanation/tuning.md). nullopt if it is none. Throws Error{kInput} for a broken row or an
/// unknown GPU.
std::optional<std::vector<TuneEvaluation>> evaluate_tuning(const std::string& path);

struct EvaluationModel {
  std::string gpu;
  std::string model;
  std::string mode;
  int64_t seq = 0;
  int64_t batch = 0;
  std::string dtype;
  std::string option;
  double measured_s = 0;
  double forecast_s = 0;
  double low_s = 0;
  double high_s = 0;
  double error_percent = 0;  ///< |forecast / measured - 1| · 100

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("EvaluationModel", "The error of one measured model.");
    field("gpu", "", "id of the GPU", &EvaluationModel::gpu);
    field("model", "", "its name", &EvaluationModel::model);
    field("mode", "", "inference or training", &EvaluationModel::mode);
    field("seq", "tokens", "length of a sequence", &EvaluationModel::seq);
    field("batch", "", "sequences", &EvaluationModel::batch);
    field("dtype", "", "of the operands", &EvaluationModel::dtype);
    field("option", "", "option in the name of the measurement's file", &EvaluationModel::option);
    field("measured_s", "s", "measured", &EvaluationModel::measured_s);
    field("forecast_s", "s", "forecast", &EvaluationModel::forecast_s);
    field("low_s", "s", "80 % interval", &EvaluationModel::low_s);
    field("high_s", "s", "80 % interval", &EvaluationModel::high_s);
    field("error_percent", "%", "absolute error", &EvaluationModel::error_percent);
  }
};

struct Evaluation;

/// Warnings that apply to the errors. They are part of the JSON; the table does not show them.
std::vector<std::string> evaluation_warnings(const Evaluation& evaluation);

struct Evaluation {
  std::vector<EvaluationRow> rows;
  std::vector<EvaluationModel> models;
  std::vector<std::string> unmatched;  ///< what could not be evaluated, and why

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Evaluation", "Forecasts compared with measurements.");
    field("schema_version", "", "of this schema", [](const Evaluation&) { return 1; });
    field("rows", "", "errors of kernels", &Evaluation::rows);
    field("models", "", "errors of whole models", &Evaluation::models);
    field("unmatched", "", "measurements that could not be evaluated, with the reason",
          &Evaluation::unmatched);
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const Evaluation& x) { return evaluation_warnings(x); });
  }
};

/// Compares forecasts with the measurements under `path` (a file or a folder). A measurement of a
/// single call contains the host's call overhead. It is compared with the forecast plus the
/// overhead that training estimated. Throws Error{kNotFound} without such a path, Error{kInput}
/// where it holds no measurements.
Evaluation evaluate(const Forecaster& forecaster, const std::string& path,
                    const std::string& predictor = "learned");

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

/// A kernel of the work that a calibration is for.
struct WorkKernel {
  std::string op;
  std::string dtype;  ///< as KernelForecast::dtype: "bf16", "bf16/fp8"
  std::string software;
  std::vector<std::pair<std::string, int64_t>> sizes;
  int64_t flops = 0;
  double share = 1;  ///< of the time of the work
};

/// Which kernels of a GPU to measure first.
struct SuggestOptions {
  std::string gpu;         ///< as in CalibrateOptions
  size_t count = 0;        ///< kernels to name
  std::string candidates;  ///< CSV of kernels, timed or not, to choose from; "": model-like sizes
  std::string weights_folder;  ///< "" for the embedded weights
  /// Kernels to choose from, each weighed by its share; empty: `candidates`.
  std::vector<WorkKernel> work = {};
};

/// The kernels that tell most: one after the other, that which narrows the forecasts of all
/// candidates most, by the model that `calibrate` learns with. As a CSV that `calibrate` reads once
/// its column latency_s is filled in; rows of `candidates` as they stand there. At most 2,000
/// candidates, drawn evenly, are weighed. Throws Error{kNotFound} for an unknown GPU, Error{kInput}
/// where the candidates hold no kernel of the GPU that has a law.
std::string suggest_kernels(const SuggestOptions& options);

}  // namespace tilecast
