#include "tilecast/evaluate.h"

#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/accelerator.h"
#include "tilecast/tune.h"

namespace tilecast {
namespace {

void run_evaluate(const Given& given) {
  const std::string output = text_of(given, "output-file");
  const std::string accelerator = text_of(given, "gpu");
  if (const auto accelerators = evaluate_accelerators(text_of(given, "PATH"), accelerator)) {
    const bool json = text_of(given, "format") == "json";
    return emit(json ? accelerator_evaluation_json(*accelerators)
                     : accelerator_evaluation_table(*accelerators, output_style(output)),
                output);
  }
  if (!accelerator.empty())
    throw UsageError("--gpu applies to cycles of accelerators; other tables name their GPUs");
  if (const auto tuning = evaluate_tuning(text_of(given, "PATH"))) {
    const bool json = text_of(given, "format") == "json";
    return emit(
        json ? tune_evaluation_json(*tuning) : tune_evaluation_table(*tuning, output_style(output)),
        output);
  }
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const Evaluation evaluation =
      evaluate(forecaster, text_of(given, "PATH"), text_of(given, "predictor", "learned"));
  if (text_of(given, "format") == "json") return emit(evaluation_json(evaluation), output);
  emit(evaluation_table(evaluation, output_style(output)), output, evaluation_warnings(evaluation));
}

}  // namespace

Command evaluate_command() {
  const CommandOption path = {
      .names = "PATH",
      .help =
          "file or folder: Tilecast's CSV, the NeuSight repository, "
          "aiconfigurator's, Vidur's, rocBLAS's or PipeWeave's CSVs, find_ARCH.csv "
          "of MIOpen's solvers",
      .kind = ValueKind::kFile,
      .required = true};
  return {.name = "evaluate",
          .help = "Error of forecasts against measurements",
          .usage = {"PATH [options]"},
          .groups = {{"Arguments", {path}},
                     {"Options",
                      {format_option({"table", "json"}),
                       {.names = "--gpu",
                        .value = "GPU",
                        .default_value = "that whose id begins the file's name",
                        .help = "the accelerator that cycles were measured on"},
                       pass_option("predictor"),
                       output_option(),
                       weights_option(),
                       calibration_option()}}},
          .examples = {"tilecast evaluate neusight/scripts/asplos/label"},
          .run = run_evaluate};
}

}  // namespace tilecast
