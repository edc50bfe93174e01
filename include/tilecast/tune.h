#pragma once

// Tuning without a search: which of MIOpen's solvers is fastest for a convolution on an AMD GPU,
// and with which parameters.

#include <cstdint>
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

/// What to run for one convolution.
struct TuneForecast {
  std::string problem;                  ///< "conv n=32 c=256 ..."
  std::string name;                     ///< of the node of a model; "" for a problem
  std::string key;                      ///< in MIOpen's databases
  std::string gpu;                      ///< id
  std::vector<SolverForecast> solvers;  ///< at most `top`, the best first; at least one
  /// What MIOpen takes where it has neither database nor search (docs/tuning.md); its name is ""
  /// if no such solver takes the problem.
  SolverForecast fallback;
  /// Time of the fallback over that of the best, with an 80 % interval; 1 without a fallback.
  double gain_ratio = 1, gain_low_ratio = 1, gain_high_ratio = 1;
  bool extrapolated = false;  ///< no chip of the GPU's class was measured
};

/// Whether the text is a problem ("conv n=..." or a database key), not a model.
bool is_tune_problem(const std::string& text);
/// Throws Error{kInput} for a problem that cannot be read.
void check_tune_problem(const std::string& text);

/// Throws Error: a problem that cannot be read or that no solver takes, a GPU that is not AMD's, an
/// unknown solver.
TuneForecast tune_problem(const std::string& problem, const GpuRef& gpu,
                          const TuneOptions& options = {});

/// All convolutions of a model in 2-D, each distinct one once; with Mode::kTraining also both
/// gradients. Of the request, mode, batch, seq, dims and dtype count. Throws Error as above; what
/// no solver takes is named in `warnings` and left out.
std::vector<TuneForecast> tune_model(const ModelRef& model, const GpuRef& gpu,
                                     const Request& request, const TuneOptions& options,
                                     std::vector<std::string>& warnings);

/// The convolutions of a file with command lines of MIOpenDriver.
std::vector<TuneForecast> tune_log(const std::string& path, const GpuRef& gpu,
                                   const TuneOptions& options, std::vector<std::string>& warnings);

std::string tune_table(const std::vector<TuneForecast>& forecasts, const TableStyle& style);
std::string tune_json(const std::vector<TuneForecast>& forecasts,
                      const std::vector<std::string>& warnings);

/// The text form of MIOpen's user databases: solvers with their times, and tuning parameters.
std::string find_database(const std::vector<TuneForecast>& forecasts);
std::string perf_database(const std::vector<TuneForecast>& forecasts);

}  // namespace tilecast
