#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "api/generation/slower_precision.h"
#include "api/remedies.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/accelerator.h"
#include "tilecast/compare.h"
#include "tilecast/error.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

constexpr int64_t kMaxRows = 1000000;

/// The request that the command line describes.
Request request_of(const Given& given) {
  std::vector<GivenOption> options;
  for (const auto& [name, values] : given) {
    const auto same = [&wanted = name](const OptionDef& option) { return option.name == wanted; };
    const auto options_end = request_options().end();
    const auto option = std::find_if(request_options().begin(), options_end, same);
    if (option == options_end) continue;
    const bool is_switch = command_option(*option).is_switch();
    options.push_back({name, is_switch ? "on" : join(values, ",")});
  }
  try {
    return make_request(options);
  } catch (const OptionError& error) {
    throw UsageError(options_as_flags(error.what()));
  }
}

/// With --require-fit, a model that does not fit is an error; the forecast has already been
/// written.
void require_fit(const Given& given, const std::vector<Warning>& warnings) {
  if (!given.count("require-fit")) return;
  for (const Warning& warning : warnings) {
    if (warning.code == WarningCode::kDoesNotFit)
      throw Error(ErrorKind::kUnsupported, "--require-fit: " + warning_text(warning));
  }
}

const ForecastFormat& format_of(const Given& given) {
  const std::string name = text_of(given, "format", "table");
  const std::span<const ForecastFormat> formats = forecast_formats();
  return *std::find_if(formats.begin(), formats.end(),  // a choice of the option: checked before
                       [&](const ForecastFormat& format) { return format.name == name; });
}

TableStyle style_of(const Given& given, const ForecastFormat& format, int64_t rows) {
  TableStyle style = output_style(text_of(given, "output-file"));
  style.rows = static_cast<size_t>(integer_of(given, "rows", rows, 0, kMaxRows));
  if (given.count("rows") && !format.is_table)
    throw UsageError("--rows applies to tables; other formats contain all kernels: omit --rows");
  return style;
}

void finish(const Given& given, const ForecastFormat& format, const std::string& text,
            const std::vector<Warning>& warnings) {
  const auto beside = format.holds_warnings ? std::vector<std::string>() : warning_texts(warnings);
  emit(text, text_of(given, "output-file"), beside);
  require_fit(given, warnings);
}

std::string timeline_text(const MemoryTimeline& timeline, const std::string& format,
                          const TableStyle& style) {
  if (format == "json") return memory_json(timeline);
  return format == "svg" ? memory_svg(timeline) : memory_table(timeline, style);
}

/// The timeline replaces the forecast.
void check_timeline(const Given& given, const Request& request) {
  if (!given.count("memory-timeline")) return;
  if (request.kind != RequestKind::kPass)
    throw UsageError(
        "--memory-timeline is that of one pass or training step: omit --prompt, or omit "
        "--memory-timeline; the memory of text generation is in its forecast");
  if (given.count("format"))
    throw UsageError(
        "--memory-timeline replaces the forecast and has formats of its own: omit --format, and "
        "use --memory-timeline table, json or svg");
  if (given.count("require-fit"))
    throw UsageError(
        "--memory-timeline replaces the forecast, which --require-fit checks: omit one of them");
  if (given.count("rows") && text_of(given, "memory-timeline") != "table")
    throw UsageError("--rows applies to tables: omit it, or use --memory-timeline table");
}

/// The GPU, or that of the cluster.
GpuRef gpu_of(const Given& given) {
  const std::string cluster = text_of(given, "cluster"), gpu = text_of(given, "gpu");
  if (cluster.empty() && gpu.empty())
    throw UsageError("forecast: --gpu is required; see 'tilecast forecast --help'");
  try {
    return load_gpu_or_cluster(gpu, cluster);
  } catch (const OptionError& error) {
    throw UsageError(options_as_flags(error.what()));
  }
}

/// "--gpu H100,A100". A path may have a comma, and so does an accelerator with parameters.
void check_one_gpu(const std::string& spec) {
  if (spec.find(',') == std::string::npos || spec.find(':') != std::string::npos || is_path(spec))
    return;
  throw UsageError(
      fmt::format("--gpu: expected one GPU, found '{}'; to compare several, use "
                  "--gpus {}",
                  printable(spec), printable(spec)));
}

/// Options of forecasts on accelerators, which GPUs do not have.
void check_no_accelerator(const Given& given) {
  for (const char* option : {"exact", "mapping", "write-mappings", "occupancy"})
    if (given.count(option))
      throw UsageError(
          fmt::format("--{} applies to accelerators: --gpu {}", option, accelerator_ids().front()));
}

void run_on_accelerator(const Given& given, const Request& request, const std::string& spec) {
  for (const char* option :
       {"require-fit", "timeline-trace", "memory-timeline", "weights", "calibration"})
    if (given.count(option))
      throw UsageError(fmt::format("--{} applies to GPUs; {} is an accelerator", option, spec));
  // The picture replaces the forecast.
  for (const char* other : {"format", "rows"})
    if (given.count("occupancy") && given.count(other))
      throw UsageError(fmt::format(
          "--occupancy and --{} are mutually exclusive: the picture is text, svg, or perfetto "
          "(JSON)",
          other));
  const std::string output = text_of(given, "output-file");
  AcceleratorOptions options{.exact = given.count("exact") > 0};
  set_mapping(options, text_of(given, "mapping"));
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  const std::string picture = text_of(given, "occupancy");
  const AcceleratorForecast forecast = forecast_accelerator(model, spec, request, options);
  if (given.count("write-mappings"))
    emit(accelerator_mappings(forecast), text_of(given, "write-mappings"), {});
  if (!picture.empty())
    return emit(occupancy_picture(accelerator_occupancy(model, spec, request, options), picture),
                output);
  const ForecastFormat& format = format_of(given);
  if (format.name == "json") return emit(accelerator_json(forecast), output);
  if (format.name == "csv") return emit(accelerator_csv(forecast), output, forecast.warnings);
  constexpr int64_t kRows = 20;
  emit(accelerator_table(forecast, style_of(given, format, kRows)), output, forecast.warnings);
}

/// Options of the forecast of one GPU, and what to do instead.
void check_comparison(const Given& given) {
  constexpr const char* kAlone =
      "--gpus compares with one line for each GPU, without details: omit --{}, or use --gpu with "
      "one of the GPUs";
  const std::pair<const char*, const char*> others[] = {
      {"gpu", "--gpus lists all GPUs to compare: add that of --{0} to it, and omit --{0}"},
      {"cluster", "--gpus compares GPUs, each in its own servers: omit --{0}, or omit --gpus"},
      {"rows", kAlone},
      {"require-fit", kAlone},
      {"memory-timeline", kAlone},
      {"timeline-trace", kAlone}};
  for (const auto& [other, advice] : others)
    if (given.count(other)) throw UsageError(fmt::format(fmt::runtime(advice), other));
}

/// One line for each GPU of --gpus.
void run_comparison(const Given& given, const Request& request) {
  check_comparison(given);
  check_no_accelerator(given);
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  std::vector<GpuRef> gpus;
  for (const std::string& name : list_of(given, "gpus")) {
    if (is_accelerator(name))
      throw UsageError(fmt::format(
          "--gpus: {} is an accelerator; give it alone with --gpu, or use 'tilecast sweep'", name));
    gpus.push_back(load_gpu_ref(name));
    const auto same = [&](const GpuRef& other) { return other.id() == gpus.back().id(); };
    if (std::any_of(gpus.begin(), gpus.end() - 1, same))
      throw UsageError(fmt::format("--gpus: {} is given twice", gpus.back().id()));
  }
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const GpuComparison comparison = compare_gpus(forecaster, model, gpus, request);
  if (!comparison.gpus.empty() && comparison.gpus.front().totals.error)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("no forecast for any of these GPUs: {}: {}",
                            comparison.gpus.front().gpu, *comparison.gpus.front().totals.error));
  const ForecastFormat& format = format_of(given);
  const std::string output = text_of(given, "output-file");
  emit(format.name == "json"  ? comparison_json(comparison)
       : format.name == "csv" ? comparison_csv(comparison)
                              : comparison_table(comparison, output_style(output)),
       output);
}

void run_forecast(const Given& given) {
  const Request request = request_of(given);
  if (given.count("gpus")) return run_comparison(given, request);
  const std::string spec = text_of(given, "gpu");
  check_one_gpu(spec);
  if (is_accelerator(spec)) return run_on_accelerator(given, request, spec);
  check_no_accelerator(given);
  check_timeline(given, request);
  const ForecastFormat& format = format_of(given);
  const bool pass = request.kind == RequestKind::kPass;
  constexpr int64_t kRows = 20, kStepRows = 8;  // of a pass; of each of two steps
  const TableStyle style = style_of(given, format, pass ? kRows : kStepRows);
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  const GpuRef gpu = gpu_of(given);
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  if (!pass) {
    const LlmForecast forecast = warn_of_slower_precision(
        forecast_llm(forecaster, model, gpu, request), forecaster, model, gpu, request);
    finish(given, format, format.tokens(forecast, style), forecast.warnings);
    return;
  }
  if (given.count("memory-timeline"))
    return emit(timeline_text(forecaster.memory_timeline(model, gpu, request),
                              text_of(given, "memory-timeline"), style),
                text_of(given, "output-file"), {});
  Forecast forecast = forecaster.forecast(model, gpu, request);
  if (given.count("timeline-trace")) {
    if (!forecast.parallel)
      throw UsageError("--timeline-trace needs several ranks or micro-batches");
    emit(step_trace_json(forecaster.step_operations(model, gpu, request)),
         text_of(given, "timeline-trace"), {});
  }
  if (format.shows_largest_batch)
    add_remedies(forecast, forecaster, model, gpu, request);
  finish(given, format, format.pass(forecast, style), forecast.warnings);
}

/// Options of all requests form one group. Options that only share their name are in the group of
/// each kind.
std::vector<OptionGroup> option_groups() {
  CommandOption gpu = gpu_option();
  gpu.required = false;  // a cluster has its own
  gpu.help += "; or --cluster";
  const CommandOption gpus = list_option(
      "gpus", "", "compares GPUs: one line for each, those that fit first, then the fastest");
  OptionGroup common{"Options", {gpu, gpus}};
  OptionGroup pass{"One pass or training step (without --prompt)", {}};
  OptionGroup tokens{"Text generation (with --prompt)", {}};
  for (const OptionDef& option : request_options()) {
    OptionGroup& group = option.kinds == kAllKinds ? common
                         : option.kinds == kPasses ? pass
                                                   : tokens;
    group.options.push_back(command_option(option));
  }
  pass.options.push_back({.names = "--memory-timeline",
                          .help = "memory over time instead of the forecast, with its peak's "
                                  "contents and a simulation of PyTorch's allocator",
                          .choices = {"table", "json", "svg"}});
  OptionGroup accelerators{
      "On accelerators (--gpu gemmini, gemmini:DIM=8, or a description)",
      {{.names = "--exact", .help = "run all instructions instead of extrapolating fixed points"},
       {.names = "--mapping",
        .value = "FILE",
        .help = "a mapping for each layer, as --write-mappings writes them, or one for all layers, "
                "'order=kcp tile=k64,c256'; default: chosen for each"},
       {.names = "--write-mappings",
        .value = "FILE",
        .help = "writes the mapping of each layer to a file, for --mapping",
        .kind = ValueKind::kFile},
       {.names = "--occupancy",
        .help = "which object holds which instruction when, of the longest layer",
        .choices = {"text", "svg", "perfetto"}}}};
  pass.options.push_back({.names = "--timeline-trace",
                          .value = "FILE",
                          .help = "writes the operations of a step over several ranks to a file "
                                  "for ui.perfetto.dev or chrome://tracing",
                          .kind = ValueKind::kFile});
  std::vector<std::string> formats;
  for (const ForecastFormat& format : forecast_formats()) formats.emplace_back(format.name);
  common.options.push_back(format_option(formats));
  common.options.push_back({.names = "--rows",
                            .value = "N",
                            .default_value = "20; with --prompt 8",
                            .help = "kernels in the table; with --prompt, for each step"});
  common.options.push_back(
      {.names = "--require-fit", .help = "exit with status 1 if the memory does not suffice"});
  CommandOption file = output_option();
  file.old_names.clear();  // here, --output is a number of tokens
  for (const CommandOption& option : {file, weights_option(), calibration_option()})
    common.options.push_back(option);
  const CommandOption model = {
      .names = "MODEL",
      .help =
          "config.json of Hugging Face or its folder, an ONNX file, a graph "
          "file (.tcg), or the name of a bundled model ('tilecast "
          "models')",
      .kind = ValueKind::kModel,
      .required = true};
  return {{"Arguments", {model}}, common, pass, tokens, accelerators};
}

}  // namespace

Command forecast_command() {
  return {.name = "forecast",
          .help = "Time and memory of a model on a GPU",
          .usage = {"MODEL --gpu GPU [options]             # one pass or training step",
                    "MODEL --cluster CLUSTER --mode training --dp N --tp N --pp N [options]",
                    "MODEL --gpu GPU --prompt N [options]  # text generation"},
          .groups = option_groups(),
          .examples = {"tilecast forecast gpt2_large --gpu H100 --mode training --batch 4",
                       "tilecast forecast llama-3-8b --gpu H100 --prompt 1024 --output 256",
                       "tilecast forecast llama-3-8b --gpus H100,L40S,MI300X --prompt 1024"},
          .run = run_forecast};
}

}  // namespace tilecast
