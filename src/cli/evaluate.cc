#include "tilecast/evaluate.h"

#include <memory>

#include "cli/commands.h"

namespace tilecast {
namespace {

struct Request {
  std::string path, format = "table", predictor = "learned", output, weights, calibration;
};

void run(const Request& request) {
  const Forecaster forecaster(request.weights, request.calibration);
  const Evaluation evaluation = evaluate(forecaster, request.path, request.predictor);
  emit(request.format == "json" ? evaluation_json(evaluation) : evaluation_table(evaluation),
       request.output);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("evaluate", "Error of forecasts against measurements");
  auto request = std::make_shared<Request>();
  command
      ->add_option("PATH", request->path,
                   "file or folder: Tilecast's CSV, the NeuSight repository, aiconfigurator's CSVs")
      ->required();
  command->add_option("--format", request->format, "table or json [table]")
      ->check(CLI::IsMember(std::vector<std::string>{"table", "json"}));
  command->add_option("--predictor", request->predictor, "learned or roofline [learned]")
      ->check(CLI::IsMember(std::vector<std::string>{"learned", "roofline"}));
  command->add_option("-o,--output", request->output, "write to a file");
  command->add_option("--weights", request->weights, "folder of other weights ('tilecast train')");
  command->add_option("--calibration", request->calibration, "file of \'tilecast calibrate\'");
  command->footer("Example:\n  tilecast evaluate neusight/scripts/asplos/label");
  command->callback([request] { run(*request); });
}

}  // namespace tilecast
