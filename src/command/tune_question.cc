// Kernel and tuning parameters without a search.

#include <fmt/format.h>

#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Tuned {
  ModelSource what;  ///< a problem or a model
  std::string log;
  GpuSource gpu;
  TuneOptions options;
  std::vector<GivenOption> words;  ///< of the request for a model
};

constexpr const char* kModelOptions[] = {"mode", "batch", "seq", "dtype"};

std::vector<OptionGroup> tune_groups() {
  constexpr int64_t kMost = 1000;
  OptionGroup models{"Models", {}};
  for (const char* name : kModelOptions)
    models.options.push_back(
        request_option(name, RequestKind::kPass, into_request<&Tuned::words>()));
  return {{"Arguments",
           {{.names = "PROBLEM|MODEL",
             .help = "\"conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F\" (dir: F, B "
                     "or W; also pad, stride, dil, group, layout), a key of MIOpen's "
                     "databases, \"gemm m=4096 n=512 k=1024 dtype=fp16\" (column-major as BLAS; "
                     "also batch, trans_a, trans_b, acc, out), or a model: all its convolutions",
             .kind = ValueKind::kModel,
             .set = into<&Tuned::what>()}}},
          {"Options",
           {gpu_option(into<&Tuned::gpu>()),
            {.names = "--solver",
             .value = "NAME",
             .default_value = "all that take it",
             .help = "only this solver of MIOpen",
             .set = into<&Tuned::options, &TuneOptions::solver>()},
            whole_option("--top", "5", "solvers or kernels, and sets of parameters, to show",
                         into<&Tuned::options, &TuneOptions::top>(), 1, kMost),
            whole_option("--beam", "20", "prefixes that the search of parameters keeps",
                         into<&Tuned::options, &TuneOptions::beam>(), 1, kMost),
            {.names = "--from-log",
             .value = "FILE",
             .help = "command lines of MIOpenDriver instead of a problem",
             .kind = ValueKind::kFile,
             .set = into<&Tuned::log>()}}},
          models};
}

bool is_problem_text(const Tuned& asked) {
  return !asked.what.read && is_tune_problem(asked.what.name);
}

/// Mistakes that the options alone show.
void check_tuned(const Tuned& asked, const Given& given) {
  const bool has_what = asked.what.read || !asked.what.name.empty(), has_log = !asked.log.empty();
  if (has_what && has_log)
    throw OptionError("`from-log` replaces the problem or model: give one of them");
  if (!has_what && !has_log) throw MissingOption("a problem, a model or `from-log`");
  if (is_problem_text(asked)) {
    try {
      check_tune_problem(asked.what.name);
    } catch (const Error& error) {
      throw OptionError(error.what());
    }
  }
  if (has_what && !is_problem_text(asked)) return;
  for (const char* option : {"batch", "seq", "mode", "dtype", "dim"})
    if (has(given, option))
      throw OptionError(
          fmt::format("`{}` applies to models; a problem and a log state it themselves", option));
}

Reply answer_product(const Tuned& asked, const GpuRef& gpu) {
  if (!asked.options.solver.empty())
    throw OptionError("`solver` applies to convolutions; a product has rocBLAS's kernels only");
  ProductAnswer answer{.forecast = tune_product(asked.what.name, gpu, asked.options),
                       .warnings = gpu.warnings()};
  const ProductForecast& forecast = answer.forecast;
  if (forecast.extrapolated)
    answer.warnings.push_back(
        fmt::format("{}: its tuned sizes were not learned; these are kernels of {}, the nearest "
                    "GPU whose sizes were",
                    forecast.gpu, forecast.measured_gpu));
  std::vector<std::string> warnings = answer.warnings;
  return {.answer = std::move(answer), .warnings = std::move(warnings)};
}

Reply answer_tune(Tuned&& asked, const Given& given, const Asking&) {
  check_tuned(asked, given);
  const Request request = make_request(asked.words);
  const GpuRef gpu = asked.gpu.load();
  if (is_problem_text(asked) && is_product_problem(asked.what.name))
    return answer_product(asked, gpu);
  TuneAnswer answer{.forecasts = {}, .warnings = gpu.warnings()};
  if (!asked.log.empty())
    answer.forecasts = tune_log(asked.log, gpu, asked.options, answer.warnings);
  else if (is_problem_text(asked))
    answer.forecasts = {tune_problem(asked.what.name, gpu, asked.options)};
  else
    answer.forecasts = tune_model(asked.what.load(), gpu, request, asked.options, answer.warnings);
  if (answer.forecasts.front().extrapolated)
    answer.warnings.push_back(
        fmt::format("{}: no GPU of its architecture was measured; times follow from its data sheet",
                    answer.forecasts.front().gpu));
  std::vector<std::string> warnings = answer.warnings;
  return {.answer = std::move(answer), .warnings = std::move(warnings)};
}

}  // namespace

Question tune_question() {
  return question_of<Tuned, tune_groups, answer_tune>(
      "tune", "Kernels of convolutions and matrix products on AMD GPUs, without a search",
      {{"", "Tuning | ProductTuning"}});
}

}  // namespace tilecast
