// A few measurements of a GPU: which to make, and what to learn from them.

#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Measured = CalibrateOptions;
using Wanted = SuggestOptions;

std::vector<OptionGroup> calibrate_groups() {
  CommandOption output = output_option(into<&Measured::output>());
  output.help = "calibration to write, or the suggested kernels";
  return {
      {"Options",
       {{.names = "--gpu",
         .value = "GPU",
         .help = "id or alias ('tilecast gpus'), or a device file (.json)",
         .kind = ValueKind::kGpu,
         .required = true,
         .set = into<&Measured::gpu>()},
        {.names = "--measurements",
         .value = "FILE",
         .help =
             "measured kernels of that GPU (docs/reference/measurements.md); 10 to 200 are enough",
         .kind = ValueKind::kFile,
         .repeated = true,
         .set = into<&Measured::measurements>()},
        output,
        weights_option(into<&Measured::weights_folder>())}}};
}

std::vector<OptionGroup> suggest_groups() {
  constexpr int64_t kMaxKernels = 10000;
  CommandOption gpu = gpu_option(into<&Wanted::gpu>());
  return {{"Options",
           {gpu,
            whole_option("--suggest", "", "list the N kernels whose measurement tells most",
                         into<&Wanted::count>(), 1, kMaxKernels),
            {.names = "--candidates",
             .value = "FILE",
             .help = "kernels of that GPU, timed or not, to choose from; by default "
                     "those that models have",
             .kind = ValueKind::kFile,
             .set = into<&Wanted::candidates>()},
            weights_option(into<&Wanted::weights_folder>())}}};
}

Reply answer_calibrate(Measured&& asked, const Given&, const Asking&) {
  if (asked.measurements.empty() || asked.output.empty())
    throw OptionError("calibrate: give `measurements` FILE and `output-file` FILE");
  CalibrateResult result = calibrate(asked);
  std::vector<std::string> warnings = result.warnings;
  return {.answer = std::move(result), .warnings = std::move(warnings)};
}

Reply answer_suggest(Wanted&& asked, const Given&, const Asking&) {
  SuggestedKernels kernels{.csv = suggest_kernels(asked),
                           .warnings = load_gpu_ref(asked.gpu).warnings()};
  std::vector<std::string> warnings = kernels.warnings;
  return {.answer = std::move(kernels), .warnings = std::move(warnings)};
}

}  // namespace

std::vector<Question> calibration_questions() {
  return {
      question_of<Measured, calibrate_groups, answer_calibrate>(
          "calibrate", "Calibrate the forecasts of a GPU with a few measurements", {{"", "None"}}),
      question_of<Wanted, suggest_groups, answer_suggest>(
          "suggest_kernels", "Kernels of a GPU whose measurement tells most", {{"", "str"}})};
}

}  // namespace tilecast
