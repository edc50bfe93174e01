// The error of forecasts against measurements: of kernels and models, of tuning, of accelerators.

#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Evaluated {
  std::string path, gpu;
  std::string predictor = "learned";
  ForecasterSource forecaster;
};

std::vector<OptionGroup> evaluate_groups() {
  std::vector<CommandOption> options = {
      {.names = "--gpu",
       .value = "GPU",
       .default_value = "that whose id begins the file's name",
       .help = "the accelerator that cycles were measured on",
       .set = into<&Evaluated::gpu>()},
      request_option("predictor", RequestKind::kPass, into<&Evaluated::predictor>())};
  for (const CommandOption& option : forecaster_options<Evaluated>()) options.push_back(option);
  return {{"Arguments",
           {{.names = "PATH",
             .help = "file or folder: Tilecast's CSV, the NeuSight repository, "
                     "aiconfigurator's, Vidur's, rocBLAS's or PipeWeave's CSVs, find_ARCH.csv "
                     "of MIOpen's solvers",
             .kind = ValueKind::kFile,
             .required = true,
             .set = into<&Evaluated::path>()}}},
          {"Options", std::move(options)}};
}

Reply answer_evaluate(Evaluated&& asked, const Given&, const Asking&) {
  if (auto accelerators = evaluate_accelerators(asked.path, asked.gpu))
    return {.answer = AcceleratorEvaluations{std::move(*accelerators)}};
  if (!asked.gpu.empty())
    throw OptionError("`gpu` applies to cycles of accelerators; other tables name their GPUs");
  if (auto tuning = evaluate_tuning(asked.path))
    return {.answer = TuneEvaluations{std::move(*tuning)}};
  Evaluation evaluation = evaluate(*asked.forecaster.load(), asked.path, asked.predictor);
  std::vector<std::string> warnings = evaluation_warnings(evaluation);
  return {.answer = std::move(evaluation), .warnings = std::move(warnings)};
}

}  // namespace

Question evaluate_question() {
  return local(question_of<Evaluated, evaluate_groups, answer_evaluate>(
      "evaluate", "Error of forecasts against measurements",
      {{"", "Evaluation | AcceleratorEvaluations | TuneEvaluations"}}));
}

}  // namespace tilecast
