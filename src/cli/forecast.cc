#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/error.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

constexpr int64_t kMostRows = 1000000;

/// A value called "FILE…" or "FOLDER…" is a path.
template <typename Options>
ValueKind kind_of(const OptionDef<Options>& option) {
  if (option.value.starts_with("FILE")) return ValueKind::kFile;
  if (option.value.starts_with("FOLDER")) return ValueKind::kFolder;
  return ValueKind::kText;
}

/// Options that contradict each other, or that mean nothing without another.
template <typename Options>
void check_together(const Given& given, const std::vector<OptionDef<Options>>& known,
                    const OptionDef<Options>& option) {
  for (const std::string& other : option.excludes) {
    if (given.count(other))
      throw UsageError(fmt::format("--{} and --{} exclude each other", option.name, other));
  }
  if (option.needs.empty() || given.at(option.name).back() == option.initial) return;
  const size_t equals = option.needs.find('=');
  const std::string name = option.needs.substr(0, equals);
  const OptionDef<Options>* needed = find_option(known, name);
  if (text_of(given, name, needed == nullptr ? "" : needed->initial) !=
      option.needs.substr(equals + 1))
    throw UsageError(
        fmt::format("--{} needs --{} {}", option.name, name, option.needs.substr(equals + 1)));
}

/// Sets what was given; refuses what only the other kind of forecast knows.
template <typename Options, typename Others>
Options options_of(const Given& given, const std::vector<OptionDef<Options>>& known,
                   const std::vector<OptionDef<Others>>& others, const std::string& refusal) {
  Options options;
  for (const auto& [name, values] : given) {
    const OptionDef<Options>* option = find_option(known, name);
    if (option == nullptr) {
      if (find_option(others, name) != nullptr)
        throw UsageError(fmt::format("--{} {}", name, refusal));
      continue;
    }
    check_together(given, known, *option);
    try {
      set_option(options, *option, values.back());
    } catch (const Error& error) {
      // What an option says of its own text is seen on the command line alone; not so a file.
      const bool path = kind_of(*option) != ValueKind::kText;
      if (error.kind() == ErrorKind::kInput && !path) throw UsageError(error.what());
      throw;
    }
  }
  return options;
}

/// With --require-fit, what does not fit is an error; the forecast has been written before.
void require_fit(const Given& given, const std::vector<Warning>& warnings) {
  if (!given.count("require-fit")) return;
  for (const Warning& warning : warnings) {
    if (warning.code == WarningCode::kDoesNotFit)
      throw Error(ErrorKind::kUnsupported, "--require-fit: " + warning_text(warning));
  }
}

TableStyle style_of(const Given& given, const std::string& output, int64_t rows) {
  TableStyle style = output_style(output);
  style.rows = static_cast<size_t>(integer_of(given, "rows", rows, 0, kMostRows));
  if (given.count("rows") && text_of(given, "format", "table") != "table")
    throw UsageError("--rows is of the table; other formats have all kernels");
  return style;
}

void run_llm(const Given& given) {
  const LlmOptions options =
      options_of(given, llm_options(), forecast_options(),
                 "does not go with --prompt; see 'tilecast forecast --help'");
  const std::string format = text_of(given, "format", "table");
  const std::string output = text_of(given, "output-file");
  constexpr int64_t kRows = 8;  // of each of two steps
  const TableStyle style = style_of(given, output, kRows);
  try {
    check_llm_options(options);
  } catch (const Error& error) {
    // The command line alone shows it, unless a trace has a part in it.
    if (error.kind() == ErrorKind::kInput && options.trace.empty()) throw UsageError(error.what());
    throw;
  }
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  const GpuRef gpu = load_gpu_ref(text_of(given, "gpu"));
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const LlmForecast forecast = forecast_llm(forecaster, model, gpu, options);
  if (format == "json") {
    emit(llm_json(forecast), output);
  } else {
    emit(format == "csv" ? llm_csv(forecast) : llm_table(forecast, style), output,
         warning_texts(forecast.warnings));
  }
  require_fit(given, forecast.warnings);
}

void run(const Given& given) {
  if (given.count("prompt") || given.count("trace")) return run_llm(given);
  const ForecastOptions options =
      options_of(given, forecast_options(), llm_options(),
                 "needs --prompt (or --trace): it is of a forecast token by token");
  const std::string format = text_of(given, "format", "table");
  const std::string output = text_of(given, "output-file");
  constexpr int64_t kRows = 20;
  TableStyle style = style_of(given, output, kRows);
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  const GpuRef gpu = load_gpu_ref(text_of(given, "gpu"));
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const Forecast forecast = forecaster.forecast(model, gpu, options);
  if (format == "csv") {
    emit(forecast_csv(forecast), output, warning_texts(forecast.warnings));
  } else {
    style.largest_batch = forecast.memory.fits ? forecaster.largest_batch(model, gpu, options)
                                               : forecast.memory.largest_batch;
    if (format == "json") {
      emit(forecast_json(forecast, style.largest_batch), output);
    } else {
      emit(forecast_table(forecast, style), output, warning_texts(forecast.warnings));
    }
  }
  require_fit(given, forecast.warnings);
}

template <typename Options>
CommandOption shown(const OptionDef<Options>& option) {
  std::vector<std::string> old_names;
  for (const std::string& old : option.old_names) old_names.push_back("--" + old);
  return {.names = "--" + option.name,
          .value = option.value,
          .initial = option.initial,
          .help = option.help,
          .choices = option.choices,
          .kind = kind_of(option),
          .old_names = old_names};
}

template <typename A, typename B>
bool alike(const OptionDef<A>& a, const OptionDef<B>& b) {
  return a.value == b.value && a.initial == b.initial && a.help == b.help && a.choices == b.choices;
}

/// Options that mean the same in both kinds of forecast stand in a group of their own; those that
/// share no more than the name stand in both kinds' groups.
std::vector<OptionGroup> option_groups() {
  OptionGroup common{"Options", {gpu_option()}};
  OptionGroup pass{"One pass or training step (without --prompt)", {}};
  OptionGroup tokens{"Token by token (with --prompt)", {}};
  for (const auto& option : forecast_options()) {
    const OptionDef<LlmOptions>* other = find_option(llm_options(), option.name);
    (other != nullptr && alike(option, *other) ? common : pass).options.push_back(shown(option));
  }
  for (const auto& option : llm_options()) {
    const OptionDef<ForecastOptions>* other = find_option(forecast_options(), option.name);
    if (other == nullptr || !alike(option, *other)) tokens.options.push_back(shown(option));
  }
  common.options.push_back(format_option({"table", "json", "csv"}));
  common.options.push_back({.names = "--rows",
                            .value = "N",
                            .initial = "20; with --prompt 8",
                            .help = "kernels that the table shows, of each step"});
  common.options.push_back(
      {.names = "--require-fit", .help = "exit with status 1 where the memory does not suffice"});
  CommandOption file = output_option();
  file.old_names.clear();  // --output is a number of tokens here
  for (const CommandOption& option : {file, weights_option(), calibration_option()})
    common.options.push_back(option);
  const CommandOption model = {.names = "MODEL",
                               .help =
                                   "config.json of Hugging Face or its folder, a graph file "
                                   "(.tcg), or the name of a bundled model ('tilecast "
                                   "models')",
                               .kind = ValueKind::kModel,
                               .required = true};
  return {{"Arguments", {model}}, common, pass, tokens};
}

}  // namespace

Command forecast_command() {
  return {.name = "forecast",
          .help = "Time and memory of a model on a GPU",
          .usage = {"MODEL --gpu GPU [options]             # one pass or training step",
                    "MODEL --gpu GPU --prompt N [options]  # token by token"},
          .groups = option_groups(),
          .examples = {"tilecast forecast gpt2_large --gpu H100 --mode training --batch 4",
                       "tilecast forecast llama-3-8b --gpu H100 --prompt 1024 --output 256"},
          .run = run};
}

}  // namespace tilecast
