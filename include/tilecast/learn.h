#pragma once

// Learning from measurements: new weights, calibrations of one GPU, errors of forecasts.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/share.h"

namespace tilecast {

/// Errors over all measurements of one GPU, operator, dtype and software.
struct EvaluationRow {
  std::string gpu;
  std::string op;
  std::string dtype;
  std::string software;
  int64_t count = 0;
  double mape_percent = 0;
  double median_percent = 0;
  double p90_percent = 0;
  double bias_ratio = 0;
  double coverage_percent = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = EvaluationRow;
    field.is("EvaluationRow", "Errors of one GPU, operator and dtype.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("op", "", "operator", &Self::op);
    field("dtype", "", "of the operands", &Self::dtype);
    field("software", "", "software whose kernels were measured", &Self::software);
    field("count", "", "number of measurements", &Self::count);
    field("mape_percent", "%", "mean absolute error", &Self::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &Self::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors", &Self::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured", &Self::bias_ratio);
    field("coverage_percent", "%", "share of measurements inside the 80 % interval",
          &Self::coverage_percent);
  }
};

/// Measured cycles of layers under given mappings: the files of shared/data/accelerators. nullopt
/// if the file has another layout.
struct AcceleratorEvaluation {
  std::string file, accelerator;
  int64_t rows = 0, left_out = 0;
  double mape_percent = 0, median_percent = 0, p90_percent = 0, bias_ratio = 0;
  std::optional<double> rank_correlation;
  std::vector<EvaluationRow> by_operator;
  double held_out_mape_percent = 0, held_out_median_percent = 0;
  std::vector<std::string> fitted;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AcceleratorEvaluation;
    field.is("AcceleratorEvaluation", "Forecast against measured cycles of one file.");
    field("file", "", "its name", &Self::file);
    field("gpu", "", "id of the accelerator", &Self::accelerator);
    field("count", "", "rows that were compared", &Self::rows);
    field("left_out", "", "rows that were not", &Self::left_out);
    field("mape_percent", "%", "mean absolute error", &Self::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &Self::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors", &Self::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured", &Self::bias_ratio);
    field("rank_correlation", "",
          "Spearman's: mean over layers with five mappings or more; where there are none, over all "
          "rows; null: there are fewer than two",
          &Self::rank_correlation);
    field("held_out_mape_percent", "%",
          "the same with the fitted parameters fitted again without each layer",
          &Self::held_out_mape_percent);
    field("held_out_median_percent", "%",
          "the same with the fitted parameters fitted again without each layer",
          &Self::held_out_median_percent);
    field("fitted", "", "parameters that were fitted", &Self::fitted);
  }
};

struct AcceleratorEvaluations {
  std::vector<AcceleratorEvaluation> accelerators;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = AcceleratorEvaluations;
    field.is_document("AcceleratorEvaluations", "Errors of accelerators.");
    field("rows", "", "errors by accelerator and operator; of cycles, which have no interval",
          [](const Self& x) {
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
  std::string rows;
  int64_t problems = 0;
  int64_t problems_with_a_choice = 0;
  double slow_down_ratio = 1;
  double within_5_percent = 0;
  int64_t times = 0;
  double mape_percent = 0, median_percent = 0;
  double first_listed_percent = 0;
  int64_t unranked_problems = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TuneErrors;
    field.is("TuneErrors", "Choice and times of solvers against those that MIOpen lists.");
    field("rows", "", "all, or held-out layers: those that the weights were not trained on",
          &Self::rows);
    field("problems", "", "convolutions", &Self::problems);
    field("problems_with_a_choice", "",
          "problems that list two solvers or more, at least one of them ranked",
          &Self::problems_with_a_choice);
    field("slow_down_ratio", "",
          "time of the listed solver that is ranked first over that of the fastest, geometric mean",
          &Self::slow_down_ratio);
    field("within_5_percent", "", "share of choices at most 5 % slower than the fastest",
          &Self::within_5_percent);
    field("times", "", "rows with a time", &Self::times);
    field("mape_percent", "%", "mean absolute error of the times", &Self::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &Self::median_percent);
    field("first_listed_percent", "%", "how often the first of all is listed",
          &Self::first_listed_percent);
    field("unranked_problems", "", "none of whose solvers the program offers",
          &Self::unranked_problems);
  }
};

/// Files of one GPU each.
struct TuneEvaluation {
  std::string file, gpu;
  bool extrapolated = false;
  std::vector<TuneErrors> errors;
  int64_t unknown_rows = 0;
  std::vector<std::string> unknown_solvers;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TuneEvaluation;
    field.is("TuneEvaluation", "Errors of one file.");
    field("file", "", "its name", &Self::file);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("extrapolated", "", "no GPU of its architecture was trained on", &Self::extrapolated);
    field("errors", "", "over all rows, and over those held out", &Self::errors);
    field("unknown_rows", "", "of solvers that the program does not know", &Self::unknown_rows);
    field("unknown_solvers", "", "their names", &Self::unknown_solvers);
  }
};

struct TuneEvaluations {
  std::vector<TuneEvaluation> tuning;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is_document("TuneEvaluations", "Errors of tuning without a search.");
    field("tuning", "", "one entry for each file", &TuneEvaluations::tuning);
  }
};

/// Reads find_ARCH.csv (.xz), or all of a folder: one row a convolution and solver
/// (docs/explanation/tuning.md). nullopt if it is none. Throws Error{kInput} for a broken row or an
/// unknown GPU.
std::optional<std::vector<TuneEvaluation>> evaluate_tuning(const std::string& path);

/// What a job of a table of measured jobs is.
struct MeasuredJob {
  Job job;           ///< named as model and batch of the table: "ResNet-18 16", "A3C"
  double steps = 1;  ///< of the job in one step of the table
  std::optional<ModelRef> memory_model;  ///< whose peak the job has: that of its largest input
};

/// How to read a table of jobs that share a GPU.
struct SharingTable {
  std::vector<MeasuredJob> jobs;
  std::string series;                       ///< rows of others are left out; "": there is one
  std::map<std::string, std::string> gpus;  ///< by the table's names; "": of all others
  std::map<std::string, ShareHow> how;      ///< the same
  bool pairs = false;  ///< also errors with pairs fitted, of those that are left out
};

/// Errors of the jobs on one GPU, or on one slice of it.
struct SharingErrors {
  std::string gpu, how, slice;
  int64_t count = 0;
  double mape_percent = 0, median_percent = 0, p90_percent = 0, bias_ratio = 0;
  double coverage_percent = 0;
  std::optional<double> half_mape_percent;
  double alone_mape_percent = 0;
  std::optional<double> median_mape_percent;
  std::optional<double> left_out_pair_mape_percent, left_out_job_mape_percent;
  std::optional<double> left_out_pair_coverage_percent;
  std::optional<int64_t> did_not_run, called, false_alarms;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SharingErrors;
    field.is("SharingErrors", "Errors of the relative speeds on one GPU or slice.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("how", "", "how jobs share it", &Self::how, {"time-slice", "mps", "streams", "mig"});
    field("slice", "", "profile of MIG; empty: pairs, or all slices", &Self::slice);
    field("count", "", "rows that were compared", &Self::count);
    field("mape_percent", "%", "mean absolute error", &Self::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &Self::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors", &Self::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured", &Self::bias_ratio);
    field("coverage_percent", "%", "share of rows inside the 80 % interval",
          &Self::coverage_percent);
    field("half_mape_percent", "%", "mean absolute error if each job of a pair got half",
          &Self::half_mape_percent);
    field("alone_mape_percent", "%", "mean absolute error if no job were slowed",
          &Self::alone_mape_percent);
    field("median_mape_percent", "%",
          "mean absolute error of the median over the rows of each slice",
          &Self::median_mape_percent);
    field("left_out_pair_mape_percent", "%",
          "mean absolute error of each pair with the other pairs fitted",
          &Self::left_out_pair_mape_percent);
    field("left_out_job_mape_percent", "%",
          "mean absolute error of the pairs of each job with three of its pairs and all of other "
          "jobs fitted",
          &Self::left_out_job_mape_percent);
    field("left_out_pair_coverage_percent", "%",
          "share of rows inside the 80 % interval that the other pairs give",
          &Self::left_out_pair_coverage_percent);
    field("did_not_run", "", "rows of pairs that did not run", &Self::did_not_run);
    field("called", "", "of these, rows whose memory is forecast to be tight or not to fit",
          &Self::called);
    field("false_alarms", "", "the same of rows of pairs that ran", &Self::false_alarms);
  }
};

/// One row that was compared.
struct SharingPoint {
  std::string gpu, job, partner, slice;
  double measured = 1;
  Interval forecast;
  std::optional<double> left_out_pair;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SharingPoint;
    field.is("SharingPoint", "A measured and a forecast relative speed.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("job", "", "whose speed it is", &Self::job);
    field("partner", "", "the job beside it; empty: none, on a slice", &Self::partner);
    field("slice", "", "profile of MIG", &Self::slice);
    field("measured", "", "relative speed", &Self::measured);
    field.interval({"forecast", "forecast_low", "forecast_high"}, "", "relative speed",
                   &Self::forecast);
    field("left_out_pair", "", "relative speed with the other pairs fitted", &Self::left_out_pair);
  }
};

/// Forecast against measured speeds of jobs that share a GPU.
struct SharingEvaluation {
  std::string file, series;
  std::vector<SharingErrors> errors;
  std::vector<SharingPoint> points;
  std::vector<std::string> unmatched;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = SharingEvaluation;
    field.is_document("SharingEvaluation",
                      "Forecast against measured speeds of jobs that share a GPU.");
    field("file", "", "its name", &Self::file);
    field("series", "", "whose rows were compared; empty: the file has one", &Self::series);
    field("errors", "", "by GPU; of slices also by slice", &Self::errors);
    field("points", "", "all rows that were compared", &Self::points);
    field("unmatched", "", "rows that could not be compared, with the reason", &Self::unmatched);
  }
};

/// Whether the file is a table of pairs of jobs or of jobs on slices
/// (docs/reference/measurements.md).
bool is_sharing_table(const std::string& path);

/// Errors of the relative speeds of such a table: of pairs over the speeds alone, of jobs on slices
/// over that on the largest slice. Throws Error{kInput} for a broken row, an unknown GPU, or
/// several series if none is chosen.
SharingEvaluation evaluate_sharing(const Forecaster& forecaster, const std::string& path,
                                   const SharingTable& table);

/// Errors of one figure of measured servers, over the rows of a group. Names are "" where the group
/// has all.
struct ServerErrors {
  std::string metric;
  std::string software, model, gpu, dtype;
  int64_t count = 0;
  double mape_percent = 0, median_percent = 0, p90_percent = 0, bias_ratio = 0;
  double coverage_percent = 0;
  std::optional<double> kendall_tau;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ServerErrors;
    field.is("ServerErrors", "Errors of one figure of measured servers.");
    field("metric", "", "the figure: see the fields of points", &Self::metric,
          {"tpot", "itl", "ttft", "tokens_per_s_per_gpu", "power", "energy_per_token",
           "energy_per_token_at_measured_rate"});
    field("software", "", "of the servers; empty: all", &Self::software);
    field("model", "", "as the table names it; empty: all", &Self::model);
    field("gpu", "", "id of the GPU; empty: all", &Self::gpu);
    field("dtype", "", "of the weights; empty: all", &Self::dtype);
    field("count", "", "rows that were compared", &Self::count);
    field("mape_percent", "%", "mean absolute error", &Self::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &Self::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors", &Self::p90_percent);
    field("bias_ratio", "", "geometric mean of forecast / measured", &Self::bias_ratio);
    field("coverage_percent", "%", "share of rows inside the 80 % interval",
          &Self::coverage_percent);
    field("kendall_tau", "",
          "of the ranks of the rows by forecast and by measured figure; null: "
          "all are equal",
          &Self::kendall_tau);
  }
};

/// A measured server beside its forecast. A figure that was not measured has neither.
struct ServerPoint {
  int64_t line = 0;
  std::string software, version, model, gpu, dtype;
  int64_t gpus = 1, tp = 1, dp = 1, ep = 1, clients = 0;
  std::string prompt, output;
  std::string statistic;
  std::optional<double> tpot_measured_s, itl_measured_s, ttft_measured_s;
  std::optional<double> tokens_per_s_per_gpu_measured;
  std::optional<double> power_measured_w, energy_per_token_measured_j;
  std::string ttft_use;
  std::optional<Interval> tpot_s, itl_s, ttft_s, tokens_per_s_per_gpu;
  std::optional<Interval> power_w, energy_per_token_j;
  std::optional<Interval> energy_per_token_at_measured_rate_j;
  std::string options;

  /// The forecast of a figure without its interval.
  static auto value_of(std::optional<Interval> ServerPoint::* figure) {
    return [figure](const ServerPoint& point) {
      const std::optional<Interval>& x = point.*figure;
      return x ? std::optional(x->value) : std::nullopt;
    };
  }
  /// nullopt for "".
  static auto text_of(std::string ServerPoint::* text) {
    return [text](const ServerPoint& point) {
      return (point.*text).empty() ? std::optional<std::string>() : point.*text;
    };
  }
  bool ttft_counts() const { return ttft_use.empty() || ttft_use == "yes"; }

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ServerPoint;
    field.is("ServerPoint", "A measured server beside its forecast.");
    field("line", "", "of the file", &Self::line);
    field("software", "", "of the server", &Self::software);
    field.if_set("version", "", "of the software", text_of(&Self::version));
    field("model", "", "as the table names it", &Self::model);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("dtype", "", "of the weights, as the table names it", &Self::dtype);
    field("gpus", "", "of the server", &Self::gpus);
    field("tp", "", "tensor-parallel ranks", &Self::tp);
    field("dp", "", "data-parallel ranks of attention", &Self::dp);
    field("ep", "", "expert-parallel ranks", &Self::ep);
    field("clients", "", "requests at once", &Self::clients);
    field("prompt", "tokens", "length of a prompt, or its range", &Self::prompt);
    field("output", "tokens", "length of an output, or its range", &Self::output);
    field.if_set("statistic", "",
                 "of the times over requests, and of times between tokens over all tokens; empty: "
                 "means",
                 text_of(&Self::statistic), {"median"});
    field.if_set("tpot_measured_s", "s", "time per output token, measured", &Self::tpot_measured_s);
    field.if_set("tpot_s", "s", "time per output token, forecast", value_of(&Self::tpot_s));
    field.bounds({"tpot_low_s", "tpot_high_s"}, "s", "80 % interval", &Self::tpot_s);
    field.if_set("itl_measured_s", "s", "time between two tokens of a stream, measured",
                 &Self::itl_measured_s);
    field.if_set("itl_s", "s", "time between two tokens of a stream, forecast",
                 value_of(&Self::itl_s));
    field.bounds({"itl_low_s", "itl_high_s"}, "s", "80 % interval", &Self::itl_s);
    field.if_set("ttft_measured_s", "s", "time to first token, measured", &Self::ttft_measured_s);
    field.if_set("ttft_s", "s", "time to first token, forecast", value_of(&Self::ttft_s));
    field.bounds({"ttft_low_s", "ttft_high_s"}, "s", "80 % interval", &Self::ttft_s);
    field.if_set("ttft_use", "", "why the time to first token does not count; yes: it does",
                 text_of(&Self::ttft_use));
    field.if_set("tokens_per_s_per_gpu_measured", "1/s", "output tokens, measured",
                 &Self::tokens_per_s_per_gpu_measured);
    field.if_set("tokens_per_s_per_gpu", "1/s", "output tokens, forecast",
                 value_of(&Self::tokens_per_s_per_gpu));
    field.bounds({"tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high"}, "1/s", "80 % interval",
                 &Self::tokens_per_s_per_gpu);
    field.if_set("power_measured_w", "W", "of one GPU, measured", &Self::power_measured_w);
    field.if_set("power_w", "W", "of one GPU, forecast", value_of(&Self::power_w));
    field.bounds({"power_low_w", "power_high_w"}, "W", "80 % interval", &Self::power_w);
    field.if_set("energy_per_token_measured_j", "J", "of all GPUs for an output token, measured",
                 &Self::energy_per_token_measured_j);
    field.if_set("energy_per_token_j", "J", "of all GPUs for an output token, forecast",
                 value_of(&Self::energy_per_token_j));
    field.bounds({"energy_per_token_low_j", "energy_per_token_high_j"}, "J", "80 % interval",
                 &Self::energy_per_token_j);
    field.if_set("energy_per_token_at_measured_rate_j", "J",
                 "of all GPUs: the forecast watts over the measured tokens a second",
                 value_of(&Self::energy_per_token_at_measured_rate_j));
    field("options", "", "further ones of the forecast: option=value, separated by spaces",
          &Self::options);
  }
};

/// Forecasts against measured servers under load.
struct ServerEvaluation {
  std::string file;
  std::vector<ServerErrors> errors;
  std::vector<ServerPoint> points;
  std::vector<std::string> unmatched;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = ServerEvaluation;
    field.is_document("ServerEvaluation", "Forecasts against measured servers under load.");
    field("file", "", "its name", &Self::file);
    field("errors", "", "in all, by software, by GPU, and by software, model, GPU and dtype",
          &Self::errors);
    field("points", "", "all rows that were compared", &Self::points);
    field("unmatched", "", "rows that could not be compared, with the reason", &Self::unmatched);
  }
};

/// Whether the file is a table of measured servers (docs/reference/measurements.md).
bool is_server_table(const std::string& path);

/// Forecasts each server of such a table. `settings`: a file that says what the rows do not (or its
/// content, which starts with "{"); "": the defaults of the software. Throws Error{kInput} for a
/// broken row or file, and where no row could be compared.
ServerEvaluation evaluate_servers(const Forecaster& forecaster, const std::string& path,
                                  const std::string& settings = "", int threads = 0);

/// Pairs of jobs that were measured on one GPU.
struct PairCalibrationOptions {
  std::filesystem::path pairs;   ///< CSV (docs/reference/measurements.md)
  std::filesystem::path output;  ///< file to write; "": none
  ShareHow how = ShareHow::kTimeSlice;
};

/// Effects of one job beside the law.
struct PairEffectRow {
  std::string job;
  int64_t pairs = 0;
  double slowed_ratio = 1, slows_ratio = 1;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PairEffectRow;
    field.is("PairEffectRow", "What measured pairs say of a job beside the law.");
    field("job", "", "its name", &Self::job);
    field("pairs", "", "that it is in", &Self::pairs);
    field("slowed_ratio", "", "by which it is slowed more than the law says: of 1/r - 1",
          &Self::slowed_ratio);
    field("slows_ratio", "", "by which it slows others more than the law says", &Self::slows_ratio);
  }
};

struct PairCalibration {
  std::string gpu, how;
  int64_t pairs = 0;
  double before_percent = 0;
  std::optional<double> after_percent;
  std::vector<PairEffectRow> jobs;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = PairCalibration;
    field.is_document("PairCalibration", "What measured pairs say beside the law of sharing.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("how", "", "how jobs share it", &Self::how, {"time-slice", "mps", "streams"});
    field("pairs", "", "that were fitted", &Self::pairs);
    field("before_percent", "%", "mean absolute error of relative speeds by the law alone",
          &Self::before_percent);
    field("after_percent", "%", "of each pair with the others fitted; null: there is one pair only",
          &Self::after_percent);
    field("jobs", "", "those that a pair tells something about", &Self::jobs);
  }
};

/// Learns what measured pairs say beside the law. Throws Error{kInput} for a broken row, a job that
/// is not among `jobs`, or steps a second of a job whose speed alone is not given.
PairCalibration calibrate_pairs(const Forecaster& forecaster, const GpuRef& gpu,
                                const std::vector<Job>& jobs,
                                const PairCalibrationOptions& options);

/// Reads what `calibrate_pairs` wrote. Throws Error{kInput} for another file, and where it is of
/// another GPU or another way of sharing.
PairEffects load_pair_effects(const std::filesystem::path& path, const GpuRef& gpu, ShareHow how);

/// One measured kernel or collective beside its forecast.
struct EvaluationPoint {
  std::string gpu, op, dtype, software, sizes;
  double measured_s = 0;
  Interval forecast_s;
  double error_percent = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = EvaluationPoint;
    field.is("EvaluationPoint", "One measured kernel or collective beside its forecast.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("op", "", "operator", &Self::op);
    field("dtype", "", "of the operands", &Self::dtype);
    field("software", "", "software whose kernel was measured", &Self::software);
    field("sizes", "", "of the kernel", &Self::sizes);
    field("measured_s", "s", "measured", &Self::measured_s);
    field.interval({"forecast_s", "low_s", "high_s"}, "s", "forecast", &Self::forecast_s);
    field("error_percent", "%", "absolute error", &Self::error_percent);
  }
};

struct EvaluationModel {
  std::string gpu;
  std::string model;
  std::string mode;
  int64_t seq = 0;
  int64_t batch = 0;
  std::string dtype;
  std::string option;
  double measured_s = 0;
  Interval forecast_s;
  double error_percent = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = EvaluationModel;
    field.is("EvaluationModel", "The error of one measured model.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("model", "", "its name", &Self::model);
    field("mode", "", "inference or training", &Self::mode);
    field("seq", "tokens", "length of a sequence", &Self::seq);
    field("batch", "", "sequences", &Self::batch);
    field("dtype", "", "of the operands", &Self::dtype);
    field("option", "", "option in the name of the measurement's file", &Self::option);
    field("measured_s", "s", "measured", &Self::measured_s);
    field.interval({"forecast_s", "low_s", "high_s"}, "s", "forecast", &Self::forecast_s);
    field("error_percent", "%", "absolute error", &Self::error_percent);
  }
};

struct EvaluationPeak {
  std::string gpu;
  std::string model;
  std::string option;
  int64_t measured_bytes = 0, forecast_bytes = 0;
  double error_percent = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = EvaluationPeak;
    field.is("EvaluationPeak", "The error of one measured peak of memory.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("model", "", "its name, or that of the run", &Self::model);
    field("option", "", "its group", &Self::option);
    field("measured_bytes", "bytes", "measured, of tensors on the last rank",
          &Self::measured_bytes);
    field("forecast_bytes", "bytes", "forecast of the same", &Self::forecast_bytes);
    field("error_percent", "%", "absolute error", &Self::error_percent);
  }
};

struct Evaluation;

/// Warnings that apply to the errors. They are part of the JSON; the table does not show them.
std::vector<std::string> evaluation_warnings(const Evaluation& evaluation);

struct Evaluation {
  std::vector<EvaluationRow> rows;
  std::vector<EvaluationModel> models;
  std::vector<EvaluationPeak> peaks;    ///< set-ups of training, each once
  std::vector<EvaluationPoint> points;  ///< the worst first
  int64_t points_left_out = 0;
  std::vector<std::string> unmatched;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = Evaluation;
    field.is_document("Evaluation", "Forecasts compared with measurements.");
    field("rows", "", "errors of kernels", &Self::rows);
    field("models", "", "errors of whole models", &Self::models);
    field("peaks", "", "errors of peaks of memory in training", &Self::peaks);
    field("points", "", "the measured kernels of the largest errors, as many as `points` asks for",
          &Self::points);
    field("points_left_out", "", "measured kernels that are not among `points`",
          &Self::points_left_out);
    field("unmatched", "", "measurements that could not be evaluated, with the reason",
          &Self::unmatched);
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const Self& x) { return evaluation_warnings(x); });
  }
};

/// Compares forecasts with the measurements under `path` (a file or a folder). A measurement of a
/// single call contains the host's call overhead. It is compared with the forecast plus the
/// overhead that training estimated. Throws Error{kNotFound} without such a path, Error{kInput}
/// where it holds no measurements. `points`: how many measured kernels to list beside the errors.
Evaluation evaluate(const Forecaster& forecaster, const std::string& path,
                    const std::string& predictor = "learned", size_t points = 0);

/// The data that weights are learned from, and how.
struct TrainOptions {
  std::vector<std::filesystem::path> data;  ///< measurement files or folders
  std::filesystem::path output;             ///< folder to write
  /// Folder of files of laws that take the place of the bundled ones of the same name; "": none.
  std::filesystem::path laws;
  std::vector<std::string> exclude_gpus;  ///< ids or aliases: all their rows are left out
  int trees = 170;                        ///< at most, in each forest
  uint64_t seed = 1;                      ///< the same one gives the same bytes
  int threads = 2;                        ///< the result does not depend on it
  bool leave_one_out = true;              ///< intervals from left-out GPUs; else from held-out rows
  std::string command;                    ///< kept in the weights
};

/// One line of the table of errors.
struct TrainError {
  std::string gpu;
  std::string op;
  std::string dtype;
  std::string software;
  size_t count = 0;
  double mape_percent = 0;
  double median_percent = 0;
  double roofline_mape_percent = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TrainError;
    field.is("TrainError", "Errors of one GPU, operator and dtype.");
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("op", "", "operator", &Self::op);
    field("dtype", "", "of the operands, or the quantization scheme", &Self::dtype);
    field("software", "", "software whose kernels were measured", &Self::software);
    field("count", "", "number of rows", &Self::count);
    field("mape_percent", "%", "mean absolute error", &Self::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &Self::median_percent);
    field("roofline_mape_percent", "%", "mean absolute error of the roofline, on the same rows",
          &Self::roofline_mape_percent);
  }
};

struct TrainResult {
  std::vector<std::string> report;  ///< rows left out, and why
  std::vector<TrainError> held_out;
  std::vector<TrainError> left_out;
  std::vector<TrainError> left_out_architecture;
  std::vector<TrainError> seen;  ///< of laws alone

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = TrainResult;
    field.is_document("Training", "The errors of new weights.");
    field("seen", "", "of rows that constants of laws were fitted to, by the laws alone",
          &Self::seen);
    field("held_out", "", "of a tenth of the rows, never trained on", &Self::held_out);
    field("left_out", "", "of each GPU by models that never saw it", &Self::left_out);
    field("left_out_architecture", "", "of each GPU by models that saw no GPU of its architecture",
          &Self::left_out_architecture);
    field.warnings(&Self::report);
  }
};

/// Trains all forests and writes kernels.weights, held_out.csv (the errors of each forest) and
/// errors.json into the output folder; checkpoints lie there too until the end, and a run that was
/// killed goes on from them to the same bytes of all three files. One run at a time writes a
/// folder. Throws Error{kUnsupported} where XGBoost (Debian: libxgboost0) cannot be loaded,
/// Error{kInput} where the data hold nothing to learn from, Error{kIo} where the folder cannot be
/// written or another run holds it; folders made in vain are removed.
TrainResult train_weights(const TrainOptions& options, const ShowProgress& progress = {});

/// Fits constants of laws to the data, with all GPUs and without each in turn, and writes laws.json
/// into the output folder: each constant before, fitted, and without each GPU. The result has the
/// errors of the laws alone, of rows that were fitted and of left-out GPUs. Of the options, `data`,
/// `output`, `exclude_gpus`, `threads` and `command` count. Throws Error{kInput} where the data
/// hold no row of such a law.
TrainResult train_laws(const TrainOptions& options, const ShowProgress& progress = {});

/// One line of the table of errors of collectives.
struct CollectiveError {
  std::string split;
  std::string gpu;
  std::string op;  ///< "": all of NCCL's
  size_t count = 0;
  double mape_percent = 0;
  double median_percent = 0;
  double p90_percent = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = CollectiveError;
    field.is("CollectiveError", "Errors of the collectives of one GPU.");
    field("split", "",
          "fitted, held-out sizes, held-out ranks (or nodes), and from 1 MB left-out GPU and "
          "left-out links: all GPUs with links of a generation",
          &Self::split);
    field("gpu", "", "id of the GPU", &Self::gpu);
    field("collective", "", "what it does; null: all of NCCL's",
          [](const Self& x) { return x.op.empty() ? nullptr : &x.op; });
    field("count", "", "number of rows", &Self::count);
    field("mape_percent", "%", "mean absolute error", &Self::mape_percent);
    field("median_percent", "%", "median of the absolute errors", &Self::median_percent);
    field("p90_percent", "%", "90th percentile of the absolute errors", &Self::p90_percent);
  }
};

struct CollectiveTrainResult {
  std::vector<std::string> report;  ///< rows left out, and why
  std::vector<CollectiveError> errors;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is_document("CollectiveTraining", "The errors of fitted curves of collectives.");
    field("errors", "", "by split, GPU and collective", &CollectiveTrainResult::errors);
    field.warnings(&CollectiveTrainResult::report);
  }
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
  std::string kind;
  size_t rows = 0;
  double before_percent = 0;
  double after_percent = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    using Self = CalibrateError;
    field.is("CalibrationError", "Errors of one kind of kernels, means of its rows.");
    field("kind", "", "matmul, softmax, ...", &Self::kind);
    field("count", "", "number of rows; 0: too few to calibrate the kind", &Self::rows);
    field("before_percent", "%", "without the calibration", &Self::before_percent);
    field("after_percent", "%", "of each row by a calibration that did not see it",
          &Self::after_percent);
  }
};

struct CalibrateResult {
  std::string gpu;
  std::vector<CalibrateError> kinds;
  std::vector<std::string> warnings;  ///< what the device file lacks; rows left out, and why

  template <typename Fields>
  static void fields(Fields& field) {
    field.is_document("Calibration", "Errors of forecasts before and after a calibration.");
    field("gpu", "", "id of the GPU", &CalibrateResult::gpu);
    field("kinds", "", "all kinds of kernels", &CalibrateResult::kinds);
    field.warnings(&CalibrateResult::warnings);
  }
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
  int64_t flops = 0, bytes = 0;
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
