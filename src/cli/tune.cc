// 'tilecast tune': kernel and tuning parameters without a search.

#include "tilecast/tune.h"

#include <fmt/format.h>

#include "base/file.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr std::string_view kPerfSuffix = ".udb.txt", kFindSuffix = ".ufdb.txt";

/// Options of models, which a problem states itself.
void check_options(const Given& given, bool has_model) {
  if (has_model) return;
  for (const char* option : {"batch", "seq", "mode", "dtype", "dim"})
    if (given.count(option))
      throw UsageError(
          fmt::format("--{} applies to models; a problem and a log state it themselves", option));
}

/// The command line alone shows what is wrong with a problem.
void check_problem(const std::string& text) {
  if (!is_tune_problem(text)) return;
  try {
    check_tune_problem(text);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

Request tuned_request(const Given& given) {
  std::vector<GivenOption> options;
  for (const char* name : {"batch", "seq", "mode", "dtype"})
    if (given.count(name)) options.push_back({name, text_of(given, name)});
  try {
    return make_request(options);
  } catch (const OptionError& error) {
    throw UsageError(error.what());
  }
}

TuneOptions tune_options(const Given& given) {
  return {.solver = text_of(given, "solver"),
          .top = integer_of(given, "top", 5, 1, 1000),
          .beam = integer_of(given, "beam", 20, 1, 1000)};
}

std::vector<TuneForecast> forecasts_of(const Given& given, const GpuRef& gpu,
                                       std::vector<std::string>& warnings) {
  const TuneOptions options = tune_options(given);
  const std::string log = text_of(given, "from-log");
  if (!log.empty()) return tune_log(log, gpu, options, warnings);
  const std::string what = text_of(given, "PROBLEM|MODEL");
  if (is_tune_problem(what)) return {tune_problem(what, gpu, options)};
  return tune_model(load_model_ref(what), gpu, tuned_request(given), options, warnings);
}

void run_product(const Given& given, const GpuRef& gpu) {
  const std::string output = text_of(given, "output-file");
  if (given.count("solver"))
    throw UsageError("--solver applies to convolutions; a product has rocBLAS's kernels only");
  if (output.ends_with(kPerfSuffix))
    throw UsageError("MIOpen's user databases hold convolutions, no products");
  const ProductForecast forecast =
      tune_product(text_of(given, "PROBLEM|MODEL"), gpu, tune_options(given));
  std::vector<std::string> warnings = gpu.warnings();
  if (forecast.extrapolated)
    warnings.push_back(
        fmt::format("{}: its tuned sizes were not learned; these are kernels of {}, the nearest "
                    "GPU whose sizes were",
                    forecast.gpu, forecast.measured_gpu));
  if (text_of(given, "format") == "json") return emit(product_json(forecast, warnings), output);
  emit(product_table(forecast, output_style(output)), output, warnings);
}

/// X.udb.txt for the parameters, X.ufdb.txt beside it for the solvers.
void write_databases(const std::vector<TuneForecast>& forecasts, const std::string& perf_path) {
  const std::string start = perf_path.substr(0, perf_path.size() - kPerfSuffix.size());
  write_file(perf_path, perf_database(forecasts));
  write_file(start + std::string(kFindSuffix), find_database(forecasts));
  emit(fmt::format("{} and {}: {} convolutions\n", perf_path, start + std::string(kFindSuffix),
                   forecasts.size()),
       "");
}

void run_tune(const Given& given) {
  const bool has_what = given.count("PROBLEM|MODEL") > 0, has_log = given.count("from-log") > 0;
  if (has_what == has_log)
    throw UsageError(has_what ? "--from-log replaces the problem or model: give one of them"
                              : "a problem, a model or --from-log is required; see 'tilecast tune "
                                "--help'");
  check_problem(text_of(given, "PROBLEM|MODEL"));
  check_options(given, has_what && !is_tune_problem(text_of(given, "PROBLEM|MODEL")));
  const GpuRef gpu = load_gpu_ref(text_of(given, "gpu"));
  if (is_product_problem(text_of(given, "PROBLEM|MODEL"))) return run_product(given, gpu);
  const std::string output = text_of(given, "output-file");
  std::vector<std::string> warnings = gpu.warnings();
  const std::vector<TuneForecast> forecasts = forecasts_of(given, gpu, warnings);
  if (forecasts.front().extrapolated)
    warnings.push_back(
        fmt::format("{}: no GPU of its architecture was measured; times follow from its data sheet",
                    forecasts.front().gpu));
  if (output.ends_with(kPerfSuffix)) {
    write_databases(forecasts, output);
    warnings.push_back(
        "no MIOpen has read these files yet: their form is assumed (docs/tuning.md); check with "
        "MIOPEN_LOG_LEVEL=6 that yours finds the records");
    return emit("", "", warnings);
  }
  if (text_of(given, "format") == "json") return emit(tune_json(forecasts, warnings), output);
  emit(tune_table(forecasts, output_style(output)), output, warnings);
}

CommandOption count_option(const std::string& name, const std::string& value,
                           const std::string& help) {
  return {.names = name, .value = "N", .default_value = value, .help = help};
}

}  // namespace

Command tune_command() {
  CommandOption output = output_option();
  output.help +=
      "; a name that ends in .udb.txt: MIOpen's user databases, the parameters there and "
      "the solvers in .ufdb.txt beside it";
  return {
      .name = "tune",
      .help = "Kernels of convolutions and matrix products on AMD GPUs, without a search",
      .usage = {"PROBLEM --gpu GPU [options]", "MODEL --gpu GPU [options]",
                "--from-log FILE --gpu GPU [options]"},
      .groups =
          {{"Arguments",
            {{.names = "PROBLEM|MODEL",
              .help = "\"conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F\" (dir: F, B "
                      "or W; also pad, stride, dil, group, layout), a key of MIOpen's "
                      "databases, \"gemm m=4096 n=512 k=1024 dtype=fp16\" (column-major as BLAS; "
                      "also batch, trans_a, trans_b, acc, out), or a model: all its convolutions",
              .kind = ValueKind::kModel}}},
           {"Options",
            {gpu_option(),
             {.names = "--solver",
              .value = "NAME",
              .default_value = "all that take it",
              .help = "only this solver of MIOpen"},
             count_option("--top", "5", "solvers or kernels, and sets of parameters, to show"),
             count_option("--beam", "20", "prefixes that the search of parameters keeps"),
             {.names = "--from-log",
              .value = "FILE",
              .help = "command lines of MIOpenDriver instead of a problem",
              .kind = ValueKind::kFile},
             format_option({"table", "json"}),
             output}},
           {"Models",
            {pass_option("mode"), pass_option("batch"), pass_option("seq"), pass_option("dtype")}}},
      .examples =
          {"tilecast tune \"conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F\" --gpu "
           "gfx906_60",
           "tilecast tune \"gemm m=4096 n=512 k=1024 trans_a=T dtype=fp16\" --gpu MI250X",
           "tilecast tune resnet50.onnx --gpu MI210 -o user.udb.txt"},
      .run = run_tune};
}

}  // namespace tilecast
