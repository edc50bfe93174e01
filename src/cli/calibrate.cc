#include "train/calibrate.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "devices/registry.h"
#include "report/text_table.h"
#include "tilecast/error.h"
#include "train/calibration_data.h"

namespace tilecast {
namespace {

std::string summary(const Calibration& calibration, const TableStyle& style) {
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
    table.rows.push_back({name, format_integer(static_cast<int64_t>(net.rows)),
                          fmt::format("{:.1f}", net.error_before_percent),
                          fmt::format("{:.1f}", net.error_after_percent)});
  }
  return title_lines(
             fmt::format("Calibration of {}; after: each row by a calibration that did not see it",
                         calibration.gpu),
             style) +
         "\n" + format_text_table(table, style, 2);
}

void run(const Given& given) {
  const std::string output = text_of(given, "output-file");
  const std::vector<std::string> measurements = texts_of(given, "measurements");
  constexpr int64_t kMaxKernels = 10000;
  const int64_t suggested = integer_of(given, "suggest", 0, 1, kMaxKernels);
  if (suggested > 0 && !measurements.empty())
    throw UsageError("calibrate: --suggest and --measurements exclude each other");
  if (suggested == 0 && (measurements.empty() || output.empty()))
    throw UsageError("calibrate: give --measurements FILE and -o FILE, or --suggest N");
  const Device device = find_device(text_of(given, "gpu"));
  if (suggested > 0)
    return emit(suggest_kernels(device, static_cast<size_t>(suggested)), output, device.warnings);
  const Weights weights = load_weights(text_of(given, "weights"));
  const CalibrationData data =
      read_calibration_data(measurements, device, text_of(given, "gpu"), weights);
  const Calibration calibration = calibrate(weights, device, data.rows);
  write_file(output, serialize_calibration(calibration));
  std::vector<std::string> warnings = device.warnings;
  warnings.insert(warnings.end(), data.report.begin(), data.report.end());
  emit(summary(calibration, output_style("")) +
           fmt::format("\nforecast with --calibration {}\n", output),
       "", warnings);
}

}  // namespace

Command calibrate_command() {
  CommandOption output = output_option();
  output.help = "calibration to write, or the suggested kernels";
  return {.name = "calibrate",
          .help = "A GPU's forecasts, sharpened by a few measurements",
          .usage = {"--gpu GPU --suggest N [-o FILE]", "--gpu GPU --measurements FILE... -o FILE"},
          .groups = {{"Options",
                      {gpu_option(),
                       {.names = "--measurements",
                        .value = "FILE",
                        .help = "measured kernels of that GPU (docs/data.md); 20 to 200 are enough",
                        .kind = ValueKind::kFile,
                        .repeated = true},
                       {.names = "--suggest",
                        .value = "N",
                        .help = "print so many kernels worth measuring first"},
                       output,
                       weights_option()}}},
          .examples = {"tilecast calibrate --gpu L40S --suggest 100 -o few.csv   # add latency_s",
                       "tilecast calibrate --gpu L40S --measurements few.csv -o l40s.json",
                       "tilecast forecast gpt2_large --gpu L40S --calibration l40s.json"},
          .run = run};
}

}  // namespace tilecast
