// A few measurements of a GPU: which to make, and what to learn from them; pairs of jobs that were
// measured on it.

#include <fmt/format.h>

#include <span>
#include <utility>

#include "base/text.h"
#include "command/job_source.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "devices/registry.h"
#include "ops/op_def.h"
#include "profile/measured_kernels.h"
#include "software/software.h"
#include "tilecast/error.h"
#include "train/calibrate.h"

namespace tilecast {
namespace {

struct Measured : CalibrateOptions {
  std::vector<std::string> traces;
};
/// Kernels to measure, of the work of a model if there is one.
struct Wanted : SuggestOptions {
  ModelSource model;
  std::vector<GivenOption> words;
};

/// Pairs of jobs.
struct MeasuredPairs : PairCalibrationOptions {
  GpuSource gpu;
  std::string jobs;
  ForecasterSource forecaster;
};

/// Options of the work: of one pass, or with `prompt` of text generation.
constexpr std::pair<const char*, RequestKind> kWorkOptions[] = {
    {"mode", RequestKind::kPass},       {"batch", RequestKind::kPass},
    {"seq", RequestKind::kPass},        {"dtype", RequestKind::kPass},
    {"attention", RequestKind::kPass},  {"software", RequestKind::kPass},
    {"prompt", RequestKind::kGenerate}, {"kv-dtype", RequestKind::kGenerate}};

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
        {.names = "--trace",
         .value = "FILE",
         .help =
             "a trace of torch.profiler that was made on that GPU, with record_shapes=True: its "
             "kernels whose work is sure are measurements",
         .kind = ValueKind::kFile,
         .repeated = true,
         .set = into<&Measured::traces>()},
        output,
        weights_option(into<&Measured::weights_folder>())}}};
}

std::vector<OptionGroup> pair_groups() {
  constexpr auto kHow = choice_words(ShareHow{});
  CommandOption output = output_option(into<&MeasuredPairs::output>());
  output.help = "calibration of pairs to write, for share --pairs";
  output.required = true;
  std::vector<CommandOption> options = {
      gpu_option(into<&MeasuredPairs::gpu>()),
      {.names = "--pairs",
       .value = "FILE",
       .help = "measured pairs of jobs on that GPU, CSV with the columns job, partner, "
               "relative_speed, partner_relative_speed (or steps_per_s, partner_steps_per_s)",
       .kind = ValueKind::kFile,
       .required = true,
       .set = into<&MeasuredPairs::pairs>()},
      {.names = "--jobs",
       .value = "FILE",
       .help = "what the jobs of these pairs are, as in share --jobs",
       .kind = ValueKind::kFile,
       .required = true,
       .set = into<&MeasuredPairs::jobs>()},
      {.names = "--how",
       .default_value = std::string(kHow.front()),
       .help = "how the jobs of these pairs share the GPU",
       .choices = {kHow.begin(), kHow.end() - 1},
       .set = into<&MeasuredPairs::how>()},
      output};
  for (const CommandOption& option : forecaster_options<MeasuredPairs>()) options.push_back(option);
  return {{"Options", std::move(options)}};
}

std::vector<OptionGroup> suggest_groups() {
  constexpr int64_t kMaxKernels = 10000;
  std::vector<CommandOption> options = {
      gpu_option(into<&Wanted::gpu>()),
      whole_option("--suggest", "", "list the N kernels whose measurement tells most",
                   into<&Wanted::count>(), 1, kMaxKernels),
      {.names = "--model",
       .value = "MODEL",
       .help = "chooses from the kernels of this model, those with most of its time first",
       .kind = ValueKind::kModel,
       .set = into<&Wanted::model>()},
      {.names = "--candidates",
       .value = "FILE",
       .help = "kernels of that GPU, timed or not, to choose from; by default "
               "those that models have",
       .kind = ValueKind::kFile,
       .set = into<&Wanted::candidates>()}};
  for (const auto& [name, kind] : kWorkOptions)
    options.push_back(request_option(name, kind, into_request<&Wanted::words>()));
  options.push_back(weights_option(into<&Wanted::weights_folder>()));
  return {{"Options", std::move(options)}};
}

/// The kernels of a trace as measurements of the GPU that is asked for.
MeasurementSet measurements_of_trace(const Forecaster& forecaster, const Measured& asked,
                                     const std::string& path, std::vector<std::string>& warnings) {
  const MeasuredKernels traced = measured_kernels(forecaster, path, find_device(asked.gpu));
  MeasurementSet set{.sources = {path}};
  for (const MeasuredKernel& one : traced.kernels)
    set.kernels.push_back({.gpu = asked.gpu,
                           .op = std::string(op_def(one.kernel.op).name),
                           .kernel = one.kernel,
                           .measured_s = one.seconds,
                           .protocol = Protocol::kBackToBack,
                           .line = set.kernels.size() + 1});
  warnings.push_back(
      fmt::format("{}: {} kernels with {:.0f} % of its time are sure, the others are "
                  "left out",
                  printable(path), traced.kernels.size(), 100 * traced.share));
  return set;
}

Reply answer_calibrate(Measured&& asked, const Given&, const Asking&) {
  if ((asked.measurements.empty() && asked.traces.empty()) || asked.output.empty())
    throw OptionError(
        "calibrate: give `measurements` FILE or `trace` FILE, and `output-file` FILE");
  std::vector<MeasurementSet> traced;
  std::vector<std::string> of_traces;
  if (!asked.traces.empty()) {
    const Forecaster forecaster(asked.weights_folder);
    for (const std::string& path : asked.traces)
      traced.push_back(measurements_of_trace(forecaster, asked, path, of_traces));
  }
  CalibrateResult result = calibrate_with(asked, std::move(traced));
  result.warnings.insert(result.warnings.begin(), of_traces.begin(), of_traces.end());
  std::vector<std::string> warnings = result.warnings;
  return {.answer = std::move(result), .warnings = std::move(warnings)};
}

Reply answer_pairs(MeasuredPairs&& asked, const Given&, const Asking&) {
  JobReader reader;
  reader.add_file(asked.jobs);
  std::vector<Job> jobs;
  for (AskedJob& job : reader.take()) jobs.push_back(std::move(job.job));
  return {.answer = calibrate_pairs(*asked.forecaster.load(), asked.gpu.load(), jobs, asked)};
}

/// Kernels that run, and whose they are.
struct KernelsOf {
  std::span<const KernelForecast> kernels;
  std::string software;
};

KernelsOf kernels_of(const Result& result) {
  if (const auto* pass = std::get_if<Forecast>(&result)) {
    const Software software = pass->used.execution.software.value_or(Software{});
    return {pass->kernels, std::string(software_name(software))};
  }
  if (const auto* tokens = std::get_if<GenerationForecast>(&result))
    return {tokens->kernels, tokens->software};
  return {};
}

/// The kernels of a forecast of the work, with their shares of its time.
std::vector<WorkKernel> work_of(const Wanted& asked) {
  const Forecaster forecaster(asked.weights_folder, "");
  const Request request = make_request(asked.words);
  const Result result =
      tilecast::ask(forecaster, asked.model.load(), load_gpu_ref(asked.gpu), request);
  const auto [kernels, software] = kernels_of(result);
  std::vector<WorkKernel> work;
  for (const KernelForecast& kernel : kernels) {
    WorkKernel one{.op = std::string(kernel.op),
                   .dtype = std::string(kernel.dtype),
                   .software = software,
                   .sizes = {},
                   .flops = kernel.flops,
                   .bytes = kernel.bytes,
                   .share = kernel.latency_s * static_cast<double>(kernel.count)};
    for (size_t i = 0; i < kernel.shape.names.size(); ++i)
      one.sizes.emplace_back(kernel.shape.names[i], kernel.shape.values[i]);
    work.push_back(std::move(one));
  }
  return work;
}

Reply answer_suggest(Wanted&& asked, const Given&, const Asking&) {
  const bool of_model = asked.model.read || !asked.model.name.empty();
  if (!of_model && !asked.words.empty())
    throw OptionError(fmt::format("`{}` is that of a `model`: add it", asked.words.front().name));
  if (of_model && !asked.candidates.empty())
    throw OptionError("`model` and `candidates` are mutually exclusive");
  if (of_model) asked.work = work_of(asked);
  SuggestedKernels kernels{.csv = suggest_kernels(asked),
                           .warnings = load_gpu_ref(asked.gpu).warnings()};
  std::vector<std::string> warnings = kernels.warnings;
  return {.answer = std::move(kernels), .warnings = std::move(warnings)};
}

}  // namespace

std::vector<Question> calibration_questions() {
  return {local(question_of<Measured, calibrate_groups, answer_calibrate>(
              "calibrate", "Calibrate the forecasts of a GPU with a few measurements",
              {{"", "Calibration"}})),
          local(question_of<MeasuredPairs, pair_groups, answer_pairs>(
              "calibrate_pairs", "Learn from pairs of jobs that were measured on a GPU",
              {{"", "PairCalibration"}})),
          question_of<Wanted, suggest_groups, answer_suggest>(
              "suggest_kernels", "Kernels of a GPU whose measurement tells most", {{"", "str"}})};
}

}  // namespace tilecast
