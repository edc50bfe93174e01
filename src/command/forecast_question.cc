// One pass, training step or text generation on one device, or on several to compare; memory over
// time; the operations of a step.

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/profile.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

struct ForecastQuestion {
  ModelSource model;
  GpuSource gpu;
  std::vector<GpuSource> gpus;  ///< of a comparison
  std::vector<GivenOption> words;
  ForecasterSource forecaster;
  // On accelerators.
  bool exact = false;
  std::string mapping;
  std::vector<std::string> parameters;
};

CommandOption model_argument() {
  return {.names = "MODEL",
          .help =
              "config.json of Hugging Face or its folder, an ONNX file, a graph "
              "file (.tcg), or the name of a bundled model ('tilecast "
              "models')",
          .kind = ValueKind::kModel,
          .required = true,
          .set = into<&ForecastQuestion::model>()};
}

std::vector<OptionGroup> asked_groups(std::vector<CommandOption> first) {
  std::vector<OptionGroup> groups =
      request_groups<ForecastQuestion>(std::move(first), into_request<&ForecastQuestion::words>());
  groups.insert(groups.begin(), {"Arguments", {model_argument()}});
  return groups;
}

std::vector<OptionGroup> device_groups() {
  CommandOption gpu = gpu_option(into<&ForecastQuestion::gpu>());
  gpu.required = false;  // a cluster has its own
  gpu.help += "; or --cluster";
  return asked_groups({gpu});
}

OptionGroup accelerator_options() {
  return {
      "On accelerators (--gpu gemmini, gemmini:DIM=8, or a description)",
      {switch_option("exact", "run all instructions instead of extrapolating fixed points",
                     into<&ForecastQuestion::exact>()),
       {.names = "--mapping",
        .value = "FILE",
        .help = "a mapping for each layer, as --write-mappings writes them, or one for all layers, "
                "'order=kcp tile=k64,c256'; default: chosen for each",
        .set = into<&ForecastQuestion::mapping>()},
       {.names = "--parameters",
        .value = "NAME=N",
        .help = "of the description, beside those of --gpu; may be given several times",
        .repeated = true,
        .list = true,
        .set = into<&ForecastQuestion::parameters>()}}};
}

std::vector<OptionGroup> forecast_groups() {
  std::vector<OptionGroup> groups = device_groups();
  groups.push_back(accelerator_options());
  return groups;
}

std::vector<OptionGroup> comparison_groups() {
  CommandOption gpus = list_option(
      "gpus", "", "compares GPUs: one line for each, those that fit first, then the fastest",
      into<&ForecastQuestion::gpus>(), ValueType::kText);
  gpus.kind = ValueKind::kGpu;
  return asked_groups({gpus});
}

/// The command line asks the question `trace` of it, whose answer is another one.
void check_no_profile(const ModelSource& model) {
  if (!model.read && is_profiler_trace(model.name))
    throw Error(ErrorKind::kInput, printable(model.name) +
                                       " is a trace of a profiler: use tilecast.trace, or "
                                       "'tilecast forecast'");
}

void check_given(const ForecastQuestion& asked, const Request& request) {
  check_no_profile(asked.model);
  if (!asked.gpu.given() && request.parallel.cluster.empty()) throw MissingOption("`gpu`");
}

/// "H100,A100" in place of one GPU. A path may have a comma, and so does an accelerator with
/// parameters.
void check_one_gpu(const std::string& spec) {
  if (spec.find(',') == std::string::npos || spec.find(':') != std::string::npos || is_path(spec))
    return;
  throw OptionError(
      fmt::format("`gpu`: expected one GPU, found '{}'; to compare several, use "
                  "`gpus` {}",
                  printable(spec), printable(spec)));
}

void check_no_accelerator(const Given& given) {
  for (const char* option : {"exact", "mapping", "parameters"})
    if (has(given, option))
      throw OptionError(
          fmt::format("`{}` applies to accelerators: `gpu` {}", option, accelerator_ids().front()));
}

AcceleratorOptions accelerator_options_of(const ForecastQuestion& asked) {
  AcceleratorOptions options{.exact = asked.exact};
  set_mapping(options, asked.mapping);
  for (const std::string& text : asked.parameters) {
    const size_t equals = text.rfind('=');
    std::optional<double> value;
    if (equals != std::string::npos && equals > 0)
      value = parse_number<double>(text.substr(equals + 1));
    if (!value)
      throw OptionError(fmt::format("`parameters`: expected NAME=N, found '{}'", shown_name(text)));
    options.parameters.emplace_back(text.substr(0, equals), *value);
  }
  return options;
}

bool on_accelerator(const ForecastQuestion& asked) {
  return !asked.gpu.read && is_accelerator(asked.gpu.name);
}

Reply reply_of(Result&& result) {
  Reply reply;
  std::visit(
      [&](auto&& forecast) {
        if constexpr (std::is_same_v<std::decay_t<decltype(forecast)>, AcceleratorForecast>)
          reply.warnings = forecast.warnings;
        else
          reply.warnings = warning_texts(forecast.warnings);
        reply.answer = std::forward<decltype(forecast)>(forecast);
      },
      std::move(result));
  return reply;
}

Reply answer_forecast(ForecastQuestion&& asked, const Given& given, const Asking& asking) {
  Request request = make_request(asked.words);
  check_given(asked, request);
  if (!asked.gpu.read) check_one_gpu(asked.gpu.name);
  const ModelRef model = asked.model.load();
  if (on_accelerator(asked)) {
    for (const char* option : {"weights", "calibration"})
      if (has(given, option))
        throw OptionError(
            fmt::format("`{}` applies to GPUs; {} is an accelerator", option, asked.gpu.name));
    const AcceleratorRef device{asked.gpu.name, accelerator_options_of(asked)};
    return reply_of(tilecast::ask(*asked.forecaster.load(), model, device, request));
  }
  check_no_accelerator(given);
  AskedPass pass{.forecaster = {},
                 .model = model,
                 .gpu = asked.gpu.load_or_of(request.parallel.cluster),
                 .request = std::move(request)};
  pass.forecaster = asked.forecaster.load();
  Reply reply =
      reply_of(tilecast::ask(*pass.forecaster, pass.model, pass.gpu, pass.request, asking.detail));
  if (std::holds_alternative<Forecast>(reply.answer)) reply.asked = std::move(pass);
  return reply;
}

Reply answer_comparison(ForecastQuestion&& asked, const Given&, const Asking&) {
  const Request request = make_request(asked.words);
  const ModelRef model = asked.model.load();
  std::vector<GpuRef> gpus;
  for (const GpuSource& source : asked.gpus) {
    if (!source.read && is_accelerator(source.name))
      throw OptionError(fmt::format(
          "`gpus`: {} is an accelerator; give it alone with `gpu`, or use 'tilecast sweep'",
          source.name));
    gpus.push_back(source.load());
    const auto same = [&](const GpuRef& other) { return other.id() == gpus.back().id(); };
    if (std::any_of(gpus.begin(), gpus.end() - 1, same))
      throw OptionError(fmt::format("`gpus`: {} is given twice", gpus.back().id()));
  }
  GpuComparison comparison = compare_gpus(*asked.forecaster.load(), model, gpus, request);
  if (!comparison.gpus.empty() && comparison.gpus.front().totals.error)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("no forecast for any of these GPUs: {}: {}",
                            comparison.gpus.front().gpu, *comparison.gpus.front().totals.error));
  return {.answer = std::move(comparison)};
}

/// The GPU of a question that accelerators cannot answer.
GpuRef gpu_of(const ForecastQuestion& asked, const Request& request) {
  check_given(asked, request);
  if (on_accelerator(asked))
    throw OptionError(fmt::format("{} is an accelerator; expected a GPU", asked.gpu.name));
  if (!asked.gpu.read) check_one_gpu(asked.gpu.name);
  return asked.gpu.load_or_of(request.parallel.cluster);
}

constexpr const char* kPriceOptions[] = {"price-per-gpu-hour", "price-per-kwh", "carbon-g-per-kwh"};

Reply answer_timeline(ForecastQuestion&& asked, const Given&, const Asking&) {
  const Request request = make_request(asked.words);
  if (request.kind != RequestKind::kPass)
    throw OptionError(
        "memory over time is that of one pass or training step: omit `prompt`; the memory of text "
        "generation is in its forecast");
  const ModelRef model = asked.model.load();
  const GpuRef gpu = gpu_of(asked, request);
  return {.answer = asked.forecaster.load()->memory_timeline(model, gpu, request)};
}

Reply answer_power(ForecastQuestion&& asked, const Given& given, const Asking&) {
  for (const char* option : kPriceOptions) {
    if (has(given, option))
      throw OptionError(fmt::format(
          "`{}` has no effect on power over time, which has no costs: omit it", option));
  }
  const Request request = make_request(asked.words);
  const ModelRef model = asked.model.load();
  const GpuRef gpu = gpu_of(asked, request);
  return {.answer = asked.forecaster.load()->power_timeline(model, gpu, request)};
}

Reply answer_operations(ForecastQuestion&& asked, const Given&, const Asking&) {
  const Request request = make_request(asked.words);
  const ModelRef model = asked.model.load();
  const GpuRef gpu = gpu_of(asked, request);
  return {.answer = asked.forecaster.load()->step_operations(model, gpu, request)};
}

Reply answer_occupancy(ForecastQuestion&& asked, const Given&, const Asking&) {
  const Request request = make_request(asked.words);
  if (!on_accelerator(asked))
    throw OptionError(fmt::format("expected an accelerator: `gpu` {}", accelerator_ids().front()));
  return {.answer = accelerator_occupancy(asked.model.load(), asked.gpu.name, request,
                                          accelerator_options_of(asked))};
}

}  // namespace

std::vector<Question> forecast_questions() {
  const std::vector<std::string> essential = {
      "gpu",   "gpus",      "cluster",       "mode",      "batch",    "seq",
      "dtype", "optimizer", "checkpointing", "lora-rank", "tp",       "pp",
      "dp",    "zero",      "prompt",        "output",    "software", "rate"};
  return {with_essential(question_of<ForecastQuestion, forecast_groups, answer_forecast>(
                             "forecast", "Time and memory of a model on a GPU",
                             {{"prompt", "GenerationForecast"},
                              {"trace", "GenerationForecast"},
                              {"exact", "AcceleratorForecast"},
                              {"mapping", "AcceleratorForecast"},
                              {"parameters", "AcceleratorForecast"},
                              {"", "Forecast"}}),
                         essential),
          with_essential(
              question_of<ForecastQuestion, comparison_groups, answer_comparison>(
                  "compare_gpus", "The same request on several GPUs", {{"", "GpuComparison"}}),
              essential),
          question_of<ForecastQuestion, device_groups, answer_timeline>(
              "memory_timeline", "Memory over the steps of one pass", {{"", "MemoryTimeline"}}),
          question_of<ForecastQuestion, device_groups, answer_power>(
              "power_timeline",
              "Power over a pass, a training step, or a minute of a server under load",
              {{"", "PowerTimeline"}}),
          question_of<ForecastQuestion, device_groups, answer_operations>(
              "step_operations", "The operations of a training step over several ranks",
              {{"", "dict[str, Any]"}}),
          question_of<ForecastQuestion, forecast_groups, answer_occupancy>(
              "occupancy", "Which object of an accelerator holds which instruction when",
              {{"", "str"}})};
}

}  // namespace tilecast
