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
};

/// One kernel of rocBLAS (Tensile).
struct ProductKernel {
  int64_t tile_m = 0, tile_n = 0;  ///< of C, that a work-group computes
  int64_t depth_u = 0;             ///< steps of the reduction in shared memory at once
  int64_t split = 1;               ///< work-groups that share one reduction (GlobalSplitU)
  std::string matrix_instruction;  ///< "32x32x8x1"; "none": the vector unit
  double probability = 0;          ///< that it is the fastest; 0 to 1
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
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>> parts;
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
std::string tune_json(const std::vector<TuneForecast>& forecasts,
                      const std::vector<std::string>& warnings);

std::string product_table(const ProductForecast& forecast, const TableStyle& style);
std::string product_json(const ProductForecast& forecast, const std::vector<std::string>& warnings);

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
};
struct TuneEvaluation {
  std::string file, gpu;
  bool extrapolated = false;  ///< no GPU of its architecture was trained on
  std::vector<TuneErrors> errors;
  int64_t unknown_rows = 0;  ///< of solvers that the program does not know; they do not count
  std::vector<std::string> unknown_solvers;
};

/// Reads find_ARCH.csv (.xz), or all of a folder: one row a convolution and solver
/// (docs/explanation/tuning.md). nullopt if it is none. Throws Error{kInput} for a broken row or an
/// unknown GPU.
std::optional<std::vector<TuneEvaluation>> evaluate_tuning(const std::string& path);
std::string tune_evaluation_table(const std::vector<TuneEvaluation>& files,
                                  const TableStyle& style);
std::string tune_evaluation_json(const std::vector<TuneEvaluation>& files);

}  // namespace tilecast
