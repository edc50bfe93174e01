// 'tilecast forecast': which question its options ask, and its further files.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/trace.h"
#include "command/views.h"
#include "tilecast/error.h"
#include "tilecast/profile.h"

namespace tilecast {
namespace {

/// The timeline replaces the forecast.
void check_timeline(const Given& given) {
  if (has(given, "prompt") || has(given, "trace"))
    throw UsageError(
        "--memory-timeline is that of one pass or training step: omit --prompt, or omit "
        "--memory-timeline; the memory of text generation is in its forecast");
  if (has(given, "format"))
    throw UsageError(
        "--memory-timeline replaces the forecast and has formats of its own: omit --format, and "
        "use --memory-timeline table, json or svg");
  if (has(given, "require-fit"))
    throw UsageError(
        "--memory-timeline replaces the forecast, which --require-fit checks: omit one of them");
  if (has(given, "rows") && text_of(given, "memory-timeline") != "table")
    throw UsageError("--rows applies to tables: omit it, or use --memory-timeline table");
}

/// Power over time replaces the forecast, too.
void check_power(const Given& given) {
  for (const char* other : {"format", "rows", "require-fit", "memory-timeline", "timeline-trace"})
    if (has(given, other))
      throw UsageError(fmt::format(
          "--power-timeline replaces the forecast: omit --{}, or omit --power-timeline", other));
}

/// Options of forecasts on accelerators, which GPUs do not have.
void check_no_accelerator(const Given& given) {
  for (const char* option : {"write-mappings", "occupancy"})
    if (has(given, option))
      throw UsageError(
          fmt::format("--{} applies to accelerators: --gpu {}", option, accelerator_ids().front()));
}

void check_accelerator(const Given& given, const std::string& spec) {
  for (const char* option : {"require-fit", "timeline-trace", "memory-timeline", "power-timeline"})
    if (has(given, option))
      throw UsageError(fmt::format("--{} applies to GPUs; {} is an accelerator", option, spec));
  // The picture replaces the forecast.
  for (const char* other : {"format", "rows"})
    if (has(given, "occupancy") && has(given, other))
      throw UsageError(fmt::format(
          "--occupancy and --{} are mutually exclusive: the picture is text, svg, or perfetto "
          "(JSON)",
          other));
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
      {"power-timeline", kAlone},
      {"timeline-trace", kAlone}};
  for (const auto& [other, advice] : others)
    if (has(given, other)) throw UsageError(fmt::format(fmt::runtime(advice), other));
  check_no_accelerator(given);
  for (const char* option : {"exact", "mapping", "parameters"})
    if (has(given, option))
      throw UsageError(
          fmt::format("--{} applies to accelerators: --gpu {}", option, accelerator_ids().front()));
}

const std::vector<Warning>* warnings_of(const Answer& answer) {
  if (const auto* pass = std::get_if<Forecast>(&answer)) return &pass->warnings;
  if (const auto* tokens = std::get_if<GenerationForecast>(&answer)) return &tokens->warnings;
  return nullptr;
}

/// With --require-fit, a model that does not fit is an error; the forecast has already been
/// written.
void require_fit(const Given& given, const Answer& answer) {
  if (!has(given, "require-fit")) return;
  for (const Warning& warning : *warnings_of(answer)) {
    if (warning.code == WarningCode::kDoesNotFit)
      throw Error(ErrorKind::kUnsupported, "--require-fit: " + warning_text(warning));
  }
}

/// Memory over time, or which object of an accelerator is busy when: in place of the forecast.
void show_picture(const Reply& reply, const Given& given, const std::string& format,
                  const TableStyle& style) {
  emit(*view(reply.answer, format, style), text_of(given, "output-file"), {});
}

void run_on_accelerator(const Command& command, const Given& given, const std::string& spec) {
  check_accelerator(given, spec);
  constexpr int64_t kRows = 20;
  const TableStyle style = style_of(given, kRows, "kernels");
  const std::string picture = text_of(given, "occupancy");
  if (!picture.empty() && !has(given, "write-mappings"))
    return show_picture(ask(command, "occupancy", given), given, picture, style);
  if (picture.empty()) check_file_view(command, given);
  const Reply reply = ask(command, "forecast", given);
  if (has(given, "write-mappings"))
    emit(accelerator_mappings(std::get<AcceleratorForecast>(reply.answer)),
         text_of(given, "write-mappings"), {});
  if (!picture.empty())
    return show_picture(ask(command, "occupancy", given), given, picture, style);
  show(reply, given, style);
}

bool has_load(const Given& given) {
  return has(given, "rate") || has(given, "concurrency") || has(given, "trace");
}

/// A row for each kernel says nothing of a load.
void warn_of_kernels_only(Reply& reply) {
  const auto* tokens = std::get_if<GenerationForecast>(&reply.answer);
  if (tokens != nullptr && tokens->continuous)
    reply.warnings.emplace_back(
        "csv has the kernels of a single request on an idle server; --format json has the numbers "
        "of the load");
}

void check_no_trace(const Given& given) {
  for (const CommandOption& option : options_of_traced_models())
    if (has(given, option.key()))
      throw UsageError(
          fmt::format("--{} applies to traces of a profiler: give one as the model", option.key()));
}

/// Costs are in the forecast, power over time has none.
Given without_prices(const Given& given) {
  Given others = given;
  for (const char* option : {"price-per-gpu-hour", "price-per-kwh", "carbon-g-per-kwh"})
    others.erase(option);
  return others;
}

void run_forecast(const Command& command, const Given& given) {
  if (is_profiler_trace(text_of(given, "MODEL"))) return run_forecast_of_trace(command, given);
  check_no_trace(given);
  if (has(given, "gpus")) {
    check_comparison(given);
    check_file_view(command, given);
    return show(ask(command, "compare_gpus", given), given,
                output_style(text_of(given, "output-file")));
  }
  const std::string spec = text_of(given, "gpu");
  if (is_accelerator(spec)) return run_on_accelerator(command, given, spec);
  check_no_accelerator(given);
  const std::string timeline = text_of(given, "memory-timeline");
  if (!timeline.empty()) check_timeline(given);
  const std::string power = text_of(given, "power-timeline");
  if (!power.empty()) check_power(given);
  const bool tokens = has(given, "prompt") || has(given, "trace");
  const bool traced = has(given, "timeline-trace");
  if (tokens && traced && !has_load(given))
    throw UsageError(
        "--timeline-trace writes the operations of a training step over several ranks, or a minute "
        "of a server under load: omit it, omit --prompt, or give --rate, --concurrency or --trace");
  constexpr int64_t kRows = 20, kStepRows = 8;  // of a pass; of each of two steps
  const TableStyle style = style_of(given, tokens ? kStepRows : kRows, "kernels");
  if (!timeline.empty())
    return show_picture(ask(command, "memory_timeline", given), given, timeline, style);
  if (!power.empty())
    return show_picture(ask(command, "power_timeline", given), given, power, style);
  check_file_view(command, given);
  // A row for each kernel has no place for remedies, which take longer than the forecast.
  const Detail detail = format_of(given) == "csv" ? Detail::kWarnings : Detail::kRemedies;
  Reply reply = ask(command, "forecast", given, {.detail = detail});
  if (format_of(given) == "csv") warn_of_kernels_only(reply);
  if (traced && tokens) {
    emit(*view(ask(command, "power_timeline", without_prices(given)).answer, "perfetto"),
         text_of(given, "timeline-trace"), {});
  } else if (traced) {
    const auto* pass = std::get_if<Forecast>(&reply.answer);
    if (pass != nullptr && !pass->parallel)
      throw UsageError("--timeline-trace needs several ranks or micro-batches");
    emit(*view(ask(command, "step_operations", given).answer, "json"),
         text_of(given, "timeline-trace"), {});
  }
  show(reply, given, style);
  require_fit(given, reply.answer);
}

CommandOption one_of(const std::string& names, const std::string& help,
                     const std::vector<std::string>& choices) {
  return {.names = names, .help = help, .choices = choices};
}

CommandOption file(const std::string& names, const std::string& help) {
  return {.names = names, .value = "FILE", .help = help, .kind = ValueKind::kFile};
}

/// The options of all its questions.
std::vector<OptionGroup> forecast_groups() {
  CommandOption output = file_option();
  output.old_names.clear();  // here, --output is a number of tokens
  std::vector<OptionGroup> groups = with_options(
      question("forecast").groups(),
      {format_option({"table", "json", "html", "csv"}),
       rows_option("20; with --prompt 8", "kernels in the table; with --prompt, for each step"),
       {.names = "--require-fit",
        .help = "exit with status 1 if the memory does not suffice",
        .type = ValueType::kSwitch},
       output});
  std::vector<CommandOption>& options = groups[1].options;
  options.insert(options.begin() + 1, *question("compare_gpus").index().find("gpus"));
  options[1].required = false;
  options.push_back(one_of("--power-timeline",
                           "power over a pass, a training step or a minute of a server under "
                           "load, instead of the forecast",
                           {"table", "json", "svg", "perfetto"}));
  std::vector<CommandOption>& pass = groups[2].options;
  pass.push_back(one_of("--memory-timeline",
                        "memory over time instead of the forecast, with its peak's "
                        "contents and a simulation of PyTorch's allocator",
                        {"table", "json", "html", "svg"}));
  pass.push_back(
      file("--timeline-trace",
           "writes the operations of a step over several ranks, the steps of a minute of "
           "a server under load, with their power, or a profiler's trace to a file for "
           "ui.perfetto.dev or chrome://tracing"));
  std::vector<CommandOption>& accelerator = groups.back().options;
  accelerator.push_back(
      file("--write-mappings", "writes the mapping of each layer to a file, for --mapping"));
  accelerator.push_back(one_of("--occupancy",
                               "which object holds which instruction when, of the longest layer",
                               {"text", "svg", "perfetto"}));
  groups.push_back(
      {"Of a trace of torch.profiler (MODEL is a trace.json.gz)", options_of_traced_models()});
  return groups;
}

}  // namespace

Command forecast_command() {
  return {.name = "forecast",
          .help = std::string(question("forecast").help),
          .usage = {"MODEL --gpu GPU [options]             # one pass or training step",
                    "MODEL --cluster CLUSTER --mode training --dp N --tp N --pp N [options]",
                    "MODEL --gpu GPU --prompt N [options]  # text generation"},
          .groups = forecast_groups,
          .examples = {"tilecast forecast gpt2_large --gpu H100 --mode training --batch 4",
                       "tilecast forecast llama-3-8b --gpu H100 --prompt 1024 --output 256",
                       "tilecast forecast llama-3-8b --gpus H100,L40S,MI300X --prompt 1024"},
          .run = run_forecast,
          .essential = essential_of("forecast", {"format", "output-file"})};
}

}  // namespace tilecast
