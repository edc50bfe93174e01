#include <fmt/format.h>

#include "base/text.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "report/text_table.h"
#include "tilecast/forecast.h"
#include "tilecast/train.h"

namespace tilecast {
namespace {

std::string summary(const CalibrateResult& result, const TableStyle& style) {
  TextTable table;
  table.header = {"kind", "rows", "error before %", "error after %"};
  table.right = {false, true, true, true};
  for (const CalibrateError& e : result.kinds) {
    if (e.rows == 0) {
      table.rows.push_back({e.kind, "-", "not calibrated", ""});
      continue;
    }
    table.rows.push_back({e.kind, format_integer(static_cast<int64_t>(e.rows)),
                          fmt::format("{:.1f}", e.before_percent),
                          fmt::format("{:.1f}", e.after_percent)});
  }
  return title_lines(
             fmt::format("Calibration of {}; after: each row forecast by a calibration without it",
                         result.gpu),
             style) +
         "\n" + format_text_table(table, style, 2);
}

void run_calibrate(const Given& given) {
  const std::string output = text_of(given, "output-file");
  const std::vector<std::string> measurements = texts_of(given, "measurements");
  constexpr int64_t kMaxKernels = 10000;
  const int64_t suggested = integer_of(given, "suggest", 0, 1, kMaxKernels);
  const std::string candidates = text_of(given, "candidates");
  if (suggested > 0 && !measurements.empty())
    throw UsageError("calibrate: --suggest and --measurements are mutually exclusive");
  if (suggested == 0 && !candidates.empty())
    throw UsageError("calibrate: --candidates needs --suggest N");
  if (suggested == 0 && (measurements.empty() || output.empty()))
    throw UsageError("calibrate: give --measurements FILE and -o FILE, or --suggest N");
  const std::string gpu = text_of(given, "gpu");
  if (suggested > 0)
    return emit(suggest_kernels({.gpu = gpu,
                                 .count = static_cast<size_t>(suggested),
                                 .candidates = candidates,
                                 .weights_folder = text_of(given, "weights")}),
                output, load_gpu_ref(gpu).warnings());
  const CalibrateResult result = calibrate({.gpu = gpu,
                                            .measurements = measurements,
                                            .output = output,
                                            .weights_folder = text_of(given, "weights")});
  emit(
      summary(result, output_style("")) + fmt::format("\nforecast with --calibration {}\n", output),
      "", result.warnings);
}

}  // namespace

Command calibrate_command() {
  CommandOption output = output_option();
  output.help = "calibration to write, or the suggested kernels";
  return {.name = "calibrate",
          .help = "Calibrate the forecasts of a GPU with a few measurements",
          .usage = {"--gpu GPU --suggest N [--candidates FILE] [-o FILE]",
                    "--gpu GPU --measurements FILE... -o FILE"},
          .groups = {{"Options",
                      {gpu_option(),
                       {.names = "--measurements",
                        .value = "FILE",
                        .help = "measured kernels of that GPU (docs/data.md); 10 to 200 are enough",
                        .kind = ValueKind::kFile,
                        .repeated = true},
                       {.names = "--suggest",
                        .value = "N",
                        .help = "list the N kernels whose measurement tells most"},
                       {.names = "--candidates",
                        .value = "FILE",
                        .help = "kernels of that GPU, timed or not, to choose from; by default "
                                "those that models have",
                        .kind = ValueKind::kFile},
                       output,
                       weights_option()}}},
          .examples = {"tilecast calibrate --gpu L40S --suggest 20 -o few.csv   # add latency_s",
                       "tilecast calibrate --gpu L40S --measurements few.csv -o l40s.json",
                       "tilecast forecast gpt2_large --gpu L40S --calibration l40s.json"},
          .run = run_calibrate};
}

}  // namespace tilecast
