#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "tilecast/error.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

struct Request {
  std::string model, gpu, format = "table", output, weights, calibration;
  std::map<std::string, std::string> options;
  size_t rows = 20;
  bool require_fit = false;
};

TableStyle terminal_style(bool to_file) {
  TableStyle style;
  style.width = 200;  // nothing needs to be cut where no terminal limits it
  if (to_file || !isatty(STDOUT_FILENO)) return style;
  const char* no_color = std::getenv("NO_COLOR");
  style.color = no_color == nullptr || *no_color == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
  return style;
}

/// Sets what was given; refuses what the kind of forecast does not know.
template <typename Options>
Options options_of(const Request& request, const std::vector<OptionDef<Options>>& known,
                   const std::string& other_kind) {
  Options options;
  for (const auto& [name, text] : request.options) {
    const auto option = std::find_if(known.begin(), known.end(),
                                     [&](const OptionDef<Options>& o) { return o.name == name; });
    if (option == known.end())
      throw Error(ErrorKind::kInput, fmt::format("--{} {}", name, other_kind));
    option->set(options, text);
  }
  return options;
}

/// With --require-fit, what does not fit is an error; the forecast has been written before.
void require_fit(const Request& request, bool fits, const std::vector<std::string>& warnings) {
  if (!request.require_fit || fits) return;
  const auto reason = std::find_if(warnings.begin(), warnings.end(), [](const std::string& w) {
    return w.rfind("does not fit", 0) == 0;
  });
  throw Error(ErrorKind::kUnsupported,
              "--require-fit: " + (reason == warnings.end() ? "does not fit" : *reason));
}

void run_llm(const Request& request) {
  const LlmOptions options =
      options_of(request, llm_options(), "does not go with --prompt; see --help");
  const ModelRef model = load_model_ref(request.model);
  const GpuRef gpu = load_gpu_ref(request.gpu);
  const Forecaster forecaster(request.weights, request.calibration);
  const LlmForecast forecast = forecast_llm(forecaster, model, gpu, options);
  emit(request.format == "json"  ? llm_json(forecast)
       : request.format == "csv" ? llm_csv(forecast)
                                 : llm_table(forecast),
       request.output);
  require_fit(request, forecast.fits, forecast.warnings);
}

void run(const Request& request) {
  if (request.options.count("prompt") || request.options.count("trace")) return run_llm(request);
  const ForecastOptions options =
      options_of(request, forecast_options(),
                 "needs --prompt (or --trace): it is of a forecast token by token");
  const ModelRef model = load_model_ref(request.model);
  const GpuRef gpu = load_gpu_ref(request.gpu);
  const Forecaster forecaster(request.weights, request.calibration);
  const Forecast forecast = forecaster.forecast(model, gpu, options);
  if (request.format == "csv") {
    emit(forecast_csv(forecast), request.output);
  } else {
    TableStyle style = terminal_style(!request.output.empty());
    style.rows = request.rows;
    style.largest_batch = forecaster.largest_batch(model, gpu, options);
    emit(request.format == "json" ? forecast_json(forecast, style.largest_batch)
                                  : forecast_table(forecast, style),
         request.output);
  }
  require_fit(request, forecast.memory.fits, forecast.warnings);
}

/// Options that both kinds of forecast know are added once.
template <typename Options>
void add_options(CLI::App* command, const std::shared_ptr<Request>& request,
                 const std::vector<OptionDef<Options>>& options, const std::string& group) {
  for (const OptionDef<Options>& option : options) {
    const std::string name = option.name;
    if (command->get_option_no_throw("--" + name) != nullptr) continue;
    const std::string initial = option.initial.empty() ? "" : " [" + option.initial + "]";
    CLI::Option* added =
        command
            ->add_option_function<std::string>(
                "--" + name,
                [request, name](const std::string& text) { request->options[name] = text; },
                option.help + initial)
            ->type_name(option.value);
    if (!group.empty()) added->group(group);
  }
}

/// Options of earlier versions: hidden, they say what they are called now.
void add_renamed_options(CLI::App* command) {
  const std::pair<const char*, const char*> renamed[] = {
      {"--chunk", "--max-num-batched-tokens"}, {"--memory-share", "--gpu-memory-utilization"}};
  for (const auto& [old_name, new_name] : renamed) {
    const std::string name = new_name;
    command
        ->add_option_function<std::string>(
            old_name,
            [old_name = std::string(old_name), name](const std::string&) {
              throw CLI::ValidationError(old_name, "is called " + name + " now");
            })
        ->group("");
  }
}

}  // namespace

void add_forecast_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("forecast", "Time and memory of a model on a GPU");
  auto request = std::make_shared<Request>();
  command
      ->add_option("MODEL", request->model,
                   "config.json of Hugging Face or its folder, a graph file (.tcg), or the name of "
                   "a bundled model ('tilecast models')")
      ->required();
  command
      ->add_option("--gpu", request->gpu, "id or alias ('tilecast gpus'), or a device file (.json)")
      ->required();
  add_options(command, request, forecast_options(), "");
  add_options(command, request, llm_options(), "Token by token (with --prompt)");
  add_renamed_options(command);
  command->add_flag("--require-fit", request->require_fit,
                    "exit with status 1 where the memory does not suffice");
  command->add_option("--format", request->format, "table, json or csv [table]")
      ->check(CLI::IsMember(std::vector<std::string>{"table", "json", "csv"}))
      ->type_name("FORMAT");
  command->add_option("--rows", request->rows, "kernels that the table shows [20]");
  command->add_option("-o,--output-file", request->output, "write to a file");
  command->add_option("--weights", request->weights, "folder of other weights ('tilecast train')");
  command->add_option("--calibration", request->calibration, "file of \'tilecast calibrate\'");
  command->footer(
      "Example:\n  tilecast forecast gpt2_large --gpu H100 --mode training --batch 4 --seq 1024\n"
      "  tilecast forecast llama-3-8b --gpu H100 --prompt 1024 --output 256 --batch 32");
  command->callback([request] { run(*request); });
}

}  // namespace tilecast
