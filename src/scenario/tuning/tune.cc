// Wires the models of src/tuning to the façade.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "scenario/internal.h"
#include "scenario/tuning/tune_layers.h"
#include "tilecast/error.h"
#include "tilecast/search.h"
#include "tuning/beam.h"
#include "tuning/database.h"
#include "tuning/gemm_problem.h"
#include "tuning/solver_model.h"

namespace tilecast {
namespace {

using tuning::ConvProblem;
using tuning::SolverTime;
using tuning::TunedChip;

const Device& amd_device(const GpuRef& gpu) {
  const Device& device = gpu.content->device;
  if (device.vendor != "amd" || device.as_gpu() == nullptr)
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{} is not a GPU of AMD: tuning knows the kernels of MIOpen and rocBLAS; "
                    "'tilecast gpus' lists all, gfx906_60 and the like are aliases",
                    device.id));
  return device;
}

SolverForecast forecast_of(const SolverTime& time) {
  return {.name = time.solver->name,
          .algorithm = time.solver->algorithm,
          .latency_s = {time.seconds, time.low_s, time.high_s},
          .listed_probability = time.listed_probability,
          .ranked_s = time.ranked_s,
          .parameters = {}};
}

/// Parameters of a solver that has rules and that the translator knows.
void add_parameters(SolverForecast& forecast, const ConvProblem& problem, const TunedChip& chip,
                    const TuneOptions& options) {
  const tuning::RuleFile* rules = tuning::find_rules(forecast.name);
  if (rules == nullptr) return;
  for (const tuning::LegalSet& set : tuning::search_parameters(
           tuning::Translator::bundled(), *rules, problem, chip, static_cast<size_t>(options.beam),
           static_cast<size_t>(options.top))) {
    ParameterSet& added = forecast.parameters.emplace_back();
    added.text = tuning::format_tokens(set.tokens);
    added.log_probability = set.log_probability;
    for (size_t i = 0; i < set.tokens.size(); ++i)
      added.tokens.emplace_back(rules->tokens()[i].name, set.tokens[i]);
  }
}

[[noreturn]] void fail_no_solver(const ConvProblem& problem, const Device& device) {
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("{}: no solver that MIOpen's databases list takes it on {}; they hold 2-D "
                  "convolutions with windows up to 11 x 20, strides 1, 2 and 4",
                  format_problem(problem), device.id));
}

/// Errors of two times are taken as independent: the square root of the sum of squares.
void set_gain(TuneForecast& forecast) {
  const SolverForecast &best = forecast.solvers.front(), &other = forecast.fallback;
  if (other.name.empty() || other.name == best.name) return;
  const auto spread = [&](double a, double b) { return std::hypot(std::log(a), std::log(b)); };
  forecast.gain_ratio.value = other.latency_s / best.latency_s;
  forecast.gain_ratio.low =
      forecast.gain_ratio * std::exp(-spread(other.latency_s / other.latency_s.low,
                                             best.latency_s.high / best.latency_s));
  forecast.gain_ratio.high =
      forecast.gain_ratio *
      std::exp(spread(other.latency_s.high / other.latency_s, best.latency_s / best.latency_s.low));
}

TuneForecast tune(const ConvProblem& problem, const Device& device, const TuneOptions& options) {
  const TunedChip chip = tuning::tuned_chip(device, problem.dtype);
  const std::vector<SolverTime> times = tuning::SolverModel::bundled().rank(problem, chip);
  if (times.empty()) fail_no_solver(problem, device);
  TuneForecast forecast{.problem = format_problem(problem),
                        .name = "",
                        .key = miopen_key(problem),
                        .gpu = device.id,
                        .solvers = {},
                        .fallback = {}};
  forecast.extrapolated = chip.kernel_class < 0;
  for (const SolverTime& time : times) {
    const bool asked = time.solver->name == options.solver;
    if (!options.solver.empty() && !asked) continue;
    if (!asked && time.listed_probability < tuning::kHardlyListed && !forecast.solvers.empty())
      continue;
    if (forecast.solvers.size() < static_cast<size_t>(options.top))
      forecast.solvers.push_back(forecast_of(time));
  }
  if (forecast.solvers.empty())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: {} does not take it on {}; solvers that do: {}", forecast.problem,
                            options.solver, device.id, [&] {
                              std::vector<std::string> names;
                              for (const SolverTime& t : times) names.push_back(t.solver->name);
                              return join(names, ", ");
                            }()));
  for (SolverForecast& solver : forecast.solvers) add_parameters(solver, problem, chip, options);
  if (const SolverTime* fallback = fallback_of(times, problem))
    forecast.fallback = forecast_of(*fallback);
  set_gain(forecast);
  return forecast;
}

void check_solver(const TuneOptions& options) {
  if (!options.solver.empty()) tuning::SolverTable::bundled().require(options.solver);
}

/// Problems that no solver takes are warned of, not dropped silently.
std::vector<TuneForecast> tune_all(const std::vector<NamedProblem>& problems, const Device& device,
                                   const TuneOptions& options, std::vector<std::string>& warnings) {
  std::vector<TuneForecast> forecasts;
  for (const NamedProblem& named : problems) {
    try {
      forecasts.push_back(tune(named.problem, device, options));
      forecasts.back().name = named.name;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      warnings.push_back(std::string(error.what()) + "; left out");
    }
  }
  if (forecasts.empty())
    throw Error(ErrorKind::kUnsupported,
                warnings.empty() ? "there is no convolution to tune" : warnings.front());
  return forecasts;
}

}  // namespace

bool is_product_problem(const std::string& text) { return tuning::is_gemm_text(text); }

bool is_tune_problem(const std::string& text) {
  return tuning::is_problem_text(text) || is_product_problem(text);
}

void check_tune_problem(const std::string& text) {
  if (is_product_problem(text))
    tuning::parse_gemm(text, "the problem");
  else
    tuning::parse_problem(text, "the problem");
}

ProductForecast tune_product(const std::string& text, const GpuRef& gpu,
                             const TuneOptions& options) {
  const Device& device = amd_device(gpu);
  const tuning::GemmProblem problem = tuning::parse_gemm(text, "the problem");
  const TunedChip chip = tuning::tuned_chip(device, problem.dtype);
  const tuning::Translator& translator = tuning::Translator::tensile();
  const tuning::Translator::MeasuredChip& measured = translator.chips()[translator.chip_of(chip)];
  const auto top = static_cast<size_t>(options.top);
  // The parts are sums over the beam, so it is not narrower than what is shown.
  const tuning::TensileAnswer answer =
      tuning::search_tensile(problem, chip, std::max(static_cast<size_t>(options.beam), top));
  ProductForecast forecast{.problem = format_gemm(problem),
                           .gpu = device.id,
                           .measured_gpu = measured.name,
                           .extrapolated = std::find(device.aliases.begin(), device.aliases.end(),
                                                     measured.name) == device.aliases.end(),
                           .kernels = {},
                           .parts = {}};
  for (const tuning::TensileKernel& k : answer.kernels)
    if (forecast.kernels.size() < top)
      forecast.kernels.push_back(
          {k.tile_m, k.tile_n, k.depth_u, k.split, matrix_instruction_name(k), k.probability});
  for (const tuning::TensileParameter& part : answer.parts) {
    auto& [name, values] = forecast.parts.emplace_back(part.name, std::vector<ParameterValue>());
    for (const auto& [value, probability] : part.values) values.push_back({value, probability});
    values.resize(std::min(values.size(), top));
  }
  return forecast;
}

TuneForecast tune_problem(const std::string& problem, const GpuRef& gpu,
                          const TuneOptions& options) {
  const Device& device = amd_device(gpu);
  check_solver(options);
  return tune(tuning::parse_problem(problem, "the problem"), device, options);
}

std::vector<TuneForecast> tune_model(const ModelRef& model, const GpuRef& gpu,
                                     const Request& request, const TuneOptions& options,
                                     std::vector<std::string>& warnings) {
  const Device& device = amd_device(gpu);
  check_solver(options);
  return tune_all(convolutions_of(model.content->model, device, request, warnings), device, options,
                  warnings);
}

std::vector<TuneForecast> tune_log(const std::string& path, const GpuRef& gpu,
                                   const TuneOptions& options, std::vector<std::string>& warnings) {
  const Device& device = amd_device(gpu);
  check_solver(options);
  std::vector<NamedProblem> problems;
  for (const ConvProblem& problem : tuning::parse_driver_log(read_file(path), printable(path)))
    problems.push_back({"", problem});
  return tune_all(problems, device, options, warnings);
}

std::string find_database(const std::vector<TuneForecast>& forecasts) {
  std::vector<tuning::FindRecord> records;
  for (const TuneForecast& forecast : forecasts) {
    const ConvProblem problem = tuning::parse_problem(forecast.key, "key");
    tuning::FindRecord& record = records.emplace_back();
    record.key = forecast.key;
    for (const SolverForecast& solver : forecast.solvers) {
      const tuning::Solver& known = tuning::SolverTable::bundled().require(solver.name);
      record.entries.push_back({.solver = solver.name,
                                .time_ms = solver.latency_s * 1000,
                                .workspace_bytes = tuning::workspace_bytes(known, problem),
                                .algorithm = miopen_algorithm(known, problem.pass)});
    }
  }
  return tuning::format_find_database(records);
}

std::string perf_database(const std::vector<TuneForecast>& forecasts) {
  std::vector<tuning::PerfRecord> records;
  for (const TuneForecast& forecast : forecasts) {
    tuning::PerfRecord record{forecast.key, {}};
    for (const SolverForecast& solver : forecast.solvers)
      if (!solver.parameters.empty())
        record.entries.push_back({solver.name, solver.parameters.front().text});
    if (!record.entries.empty()) records.push_back(std::move(record));
  }
  return tuning::format_perf_database(records);
}

}  // namespace tilecast
