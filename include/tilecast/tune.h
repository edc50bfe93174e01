#pragma once

// Tuning without a search: which of MIOpen's solvers is fastest for a convolution on an AMD GPU,
// and with which parameters; which of rocBLAS's kernels for a matrix product.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/report.h"

namespace tilecast {

struct TuneOptions {
  std::string solver;  ///< only this one; "": all that take the problem
  int64_t top = 5;     ///< solvers, and parameter sets of each, that the result holds
  int64_t beam = 20;   ///< prefixes that the search of parameters keeps
};

/// One set of tuning parameters of a solver.
struct ParameterSet {
  std::string text;  ///< as MIOpen's performance databases write it
  std::vector<std::pair<std::string, int64_t>> tokens;
  double log_probability = 0;  ///< natural, of the whole set, among the legal ones

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ParameterSet", "One set of tuning parameters of a solver.");
    field("text", "", "as MIOpen's databases write it", &ParameterSet::text);
    field("tokens", "", "the parameters by name", &ParameterSet::tokens);
    field("log_probability", "", "natural, among the legal sets", &ParameterSet::log_probability);
  }
};

/// One solver of a problem.
struct SolverForecast {
  std::string name;
  std::string algorithm;  ///< "GEMM", "Direct", "Winograd", "ImplicitGEMM" or "FFT"
  double latency_s = 0;
  double low_s = 0;  ///< 80 % interval
  double high_s = 0;
  /// That a search lists it among the fastest.
  double listed_probability = 0;
  /// The best first; empty for a solver without tuning parameters or without a model of them.
  std::vector<ParameterSet> parameters;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Solver", "One solver of a convolution.");
    field("name", "", "MIOpen's", &SolverForecast::name);
    field("algorithm", "", "GEMM, Direct, Winograd, ImplicitGEMM or FFT",
          &SolverForecast::algorithm);
    field("latency_s", "s", "time of the convolution", &SolverForecast::latency_s);
    field("low_s", "s", "80 % interval", &SolverForecast::low_s);
    field("high_s", "s", "80 % interval", &SolverForecast::high_s);
    field("listed_probability", "", "that a search lists it among the fastest",
          &SolverForecast::listed_probability);
    field("parameters", "",
          "legal sets of tuning parameters, the most likely first; empty without a model of them",
          &SolverForecast::parameters);
  }
};

/// The solvers to run for one convolution.
struct TuneForecast {
  std::string problem;                  ///< "conv n=32 c=256 ..."
  std::string name;                     ///< of the node of a model; "" for a problem
  std::string key;                      ///< in MIOpen's databases
  std::string gpu;                      ///< id
  std::vector<SolverForecast> solvers;  ///< at most `top`, the best first; at least one
  /// The solver that MIOpen takes where it has neither database nor search, by an assumed order of
  /// solvers (docs/explanation/tuning.md); its name is "" if no such solver takes the problem.
  SolverForecast fallback;
  /// Time of the fallback over that of the best, with an 80 % interval; 1 without a fallback.
  double gain_ratio = 1, gain_low_ratio = 1, gain_high_ratio = 1;
  bool extrapolated = false;  ///< no chip of the GPU's class was measured

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("TuneProblem", "What to run for one convolution.");
    field("problem", "", "as 'tilecast tune' takes it", &TuneForecast::problem);
    field.if_set("name", "", "of the first node of a model that has it; only for models",
                 [](const TuneForecast& x) { return x.name.empty() ? nullptr : &x.name; });
    field("key", "", "in MIOpen's databases", &TuneForecast::key);
    field("gpu", "", "id of the GPU", &TuneForecast::gpu);
    field("solvers", "", "the best first", &TuneForecast::solvers);
    field("fallback", "",
          "what MIOpen takes where it has neither database nor search, by an assumed order of "
          "solvers; null: nothing",
          [](const TuneForecast& x) { return x.fallback.name.empty() ? nullptr : &x.fallback; });
    field("gain_ratio", "", "time of the fallback over that of the best",
          &TuneForecast::gain_ratio);
    field("gain_low_ratio", "", "80 % interval", &TuneForecast::gain_low_ratio);
    field("gain_high_ratio", "", "80 % interval", &TuneForecast::gain_high_ratio);
    field("extrapolated", "", "no GPU of the architecture was measured",
          &TuneForecast::extrapolated);
  }
};

/// The convolutions that were asked for.
struct TuneAnswer {
  std::vector<TuneForecast> forecasts;
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Tuning", "Solvers and parameters without a search.");
    field("schema_version", "", "of this schema", [](const TuneAnswer&) { return 1; });
    field("problems", "", "the convolutions", &TuneAnswer::forecasts);
    field("warnings", "", "what no solver takes, and more", &TuneAnswer::warnings);
  }
};

/// One kernel of rocBLAS (Tensile).
struct ProductKernel {
  int64_t tile_m = 0, tile_n = 0;  ///< of C, that a work-group computes
  int64_t depth_u = 0;             ///< steps of the reduction in shared memory at once
  int64_t split = 1;               ///< work-groups that share one reduction (GlobalSplitU)
  std::string matrix_instruction;  ///< "32x32x8x1"; "none": the vector unit
  double probability = 0;          ///< that it is the fastest; 0 to 1

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ProductKernel", "One kernel of rocBLAS (Tensile).");
    field("tile_m", "", "rows of C that a work-group computes", &ProductKernel::tile_m);
    field("tile_n", "", "its columns", &ProductKernel::tile_n);
    field("depth_u", "", "steps of the reduction in shared memory at once",
          &ProductKernel::depth_u);
    field("split", "", "work-groups that share one reduction", &ProductKernel::split);
    field("matrix_instruction", "",
          "rows, columns, depth and blocks, as 32x32x8x1; none: the vector unit",
          &ProductKernel::matrix_instruction);
    field("probability", "", "that it is the fastest", &ProductKernel::probability);
  }
};

/// A value of one part of a kernel.
struct PartValue {
  std::string value;
  double probability = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("PartValue", "A value of one part of a kernel.");
    field("value", "", "the value", &PartValue::value);
    field("probability", "", "that the fastest kernel has it", &PartValue::probability);
  }
};

/// The kernels of one matrix product. Nothing is known of their times: the public tuned sizes name
/// one kernel each.
struct ProductForecast {
  std::string problem;                 ///< "gemm m=4096 n=512 k=1024 dtype=fp16"
  std::string gpu;                     ///< id
  std::string measured_gpu;            ///< an alias of the one whose tuned sizes were learned
  bool extrapolated = false;           ///< that is another GPU than `gpu`
  std::vector<ProductKernel> kernels;  ///< at most `top`, the most probable first; at least one
  /// Each part of a kernel by itself ("macro_tile", "depth_u", "split", "matrix_instruction"): at
  /// most `top` values with their probabilities.
  std::vector<std::pair<std::string, std::vector<PartValue>>> parts;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Product", "The kernels of one matrix product.");
    field("problem", "", "as 'tilecast tune' takes it", &ProductForecast::problem);
    field("gpu", "", "id of the GPU", &ProductForecast::gpu);
    field("measured_gpu", "", "an alias of the GPU whose tuned sizes were learned",
          &ProductForecast::measured_gpu);
    field("extrapolated", "", "that is another GPU", &ProductForecast::extrapolated);
    field("kernels", "", "the most probable first", &ProductForecast::kernels);
    field("parts", "", "probabilities of each part by itself", &ProductForecast::parts);
  }
};

/// The matrix product that was asked for.
struct ProductAnswer {
  ProductForecast forecast;
  std::vector<std::string> warnings;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ProductTuning", "Kernels of matrix products without a search.");
    field("schema_version", "", "of this schema", [](const ProductAnswer&) { return 1; });
    field("products", "", "the matrix products",
          [](const ProductAnswer& x) { return std::vector{x.forecast}; });
    field("warnings", "", "sentences that readers of the numbers should know",
          &ProductAnswer::warnings);
  }
};

/// Whether the text is a problem ("conv n=...", "gemm m=..." or a database key), not a model.
bool is_tune_problem(const std::string& text);
/// Whether it is a matrix product ("gemm m=...").
bool is_product_problem(const std::string& text);
/// Throws Error{kInput} for a problem that cannot be read.
void check_tune_problem(const std::string& text);

/// Throws Error: a problem that cannot be read or that no solver takes, a GPU that is not AMD's, an
/// unknown solver.
TuneForecast tune_problem(const std::string& problem, const GpuRef& gpu,
                          const TuneOptions& options = {});

/// Options that count: `top` and `beam`. Throws Error: a problem that cannot be read, a GPU that is
/// not AMD's.
ProductForecast tune_product(const std::string& problem, const GpuRef& gpu,
                             const TuneOptions& options = {});

/// All convolutions of a model in 2-D, each distinct one once; with Mode::kTraining also both
/// gradients. Fields of the request that count: mode, batch, seq, dims and dtype. Throws Error as
/// above; a convolution that no solver takes is named in `warnings` and left out.
std::vector<TuneForecast> tune_model(const ModelRef& model, const GpuRef& gpu,
                                     const Request& request, const TuneOptions& options,
                                     std::vector<std::string>& warnings);

/// The convolutions of a file with command lines of MIOpenDriver.
std::vector<TuneForecast> tune_log(const std::string& path, const GpuRef& gpu,
                                   const TuneOptions& options, std::vector<std::string>& warnings);

std::string tune_table(const std::vector<TuneForecast>& forecasts, const TableStyle& style);

std::string product_table(const ProductForecast& forecast, const TableStyle& style);

/// The text form of MIOpen's user databases: solvers with their times, and tuning parameters.
std::string find_database(const std::vector<TuneForecast>& forecasts);
std::string perf_database(const std::vector<TuneForecast>& forecasts);

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
std::string tune_evaluation_table(const std::vector<TuneEvaluation>& files,
                                  const TableStyle& style);

}  // namespace tilecast
