#include "train/calibrate.h"

#include <fmt/format.h>

#include <memory>

#include "base/file.h"
#include "cli/commands.h"
#include "devices/registry.h"
#include "report/text_table.h"
#include "tilecast/error.h"
#include "train/calibration_data.h"

namespace tilecast {
namespace {

struct Request {
  std::string gpu, output, weights;
  std::vector<std::string> measurements;
  size_t suggest = 0;
};

std::string summary(const Calibration& calibration) {
  TextTable table;
  table.header = {"kind", "rows", "error before %", "error after %"};
  table.right = {false, true, true, true};
  for (size_t n = 0; n < kNetCount; ++n) {
    const CalibrationNet& net = calibration.nets[n];
    const std::string name(net_name(static_cast<NetKind>(n)));
    if (net.rows == 0) {
      table.rows.push_back({name, "-", "not calibrated", ""});
      continue;
    }
    table.rows.push_back({name, std::to_string(net.rows),
                          fmt::format("{:.1f}", net.error_before_percent),
                          fmt::format("{:.1f}", net.error_after_percent)});
  }
  return fmt::format("Calibration of {}; after: each row by a calibration that did not see it\n\n",
                     calibration.gpu) +
         format_text_table(table, 2);
}

void run(const Request& request) {
  const Device device = find_device(request.gpu);
  if (request.suggest > 0) return emit(suggest_kernels(device, request.suggest), request.output);
  if (request.measurements.empty() || request.output.empty())
    throw Error(ErrorKind::kInput,
                "calibrate: give --measurements FILE and -o FILE, or --suggest N");
  const Weights weights = load_weights(request.weights);
  const CalibrationData data =
      read_calibration_data(request.measurements, device, request.gpu, weights);
  const Calibration calibration = calibrate(weights, device, data.rows);
  write_file(request.output, serialize_calibration(calibration));
  std::string text = summary(calibration);
  for (const std::string& line : data.report) text += line + "\n";
  emit(text + fmt::format("\nforecast with --calibration {}\n", request.output), "");
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("calibrate", "A GPU's forecasts, sharpened by a few measurements");
  auto request = std::make_shared<Request>();
  command->add_option("--gpu", request->gpu, "id, alias or device file")->required();
  command->add_option("--measurements", request->measurements,
                      "measured kernels of that GPU (docs/data.md); 20 to 200 are enough");
  command->add_option("--suggest", request->suggest, "print so many kernels worth measuring first")
      ->check(CLI::Range(1, 10000));
  command->add_option("-o,--output", request->output, "calibration to write");
  command->add_option("--weights", request->weights, "folder of other weights ('tilecast train')");
  command->footer(
      "Example:\n  tilecast calibrate --gpu L40S --suggest 100 -o few.csv     # then fill in "
      "latency_s\n"
      "  tilecast calibrate --gpu L40S --measurements few.csv -o l40s.json\n"
      "  tilecast forecast gpt2_large --gpu L40S --calibration l40s.json");
  command->callback([request] { run(*request); });
}

}  // namespace tilecast
