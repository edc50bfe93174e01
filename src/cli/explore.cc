// 'tilecast explore': a search that Python's package does, as the optimizer is a library of Python.
// This hands the options on.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "cli/show.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

CommandOption number_option(std::string names, std::string value, std::string help) {
  return {.names = std::move(names),
          .value = "N",
          .default_value = std::move(value),
          .help = std::move(help),
          .type = ValueType::kWhole};
}

std::vector<OptionGroup> explore_groups() {
  return {{"Arguments",
           {{.names = "SPEC",
             .help = "JSON file: device, parameters, limits, forecasts, objectives",
             .kind = ValueKind::kFile,
             .required = true}}},
          {"Options",
           {{.names = "--objective",
             .value = "EXPRESSION",
             .help = "in place of the spec's; several give a front; 'max:...' is maximized",
             .repeated = true},
            number_option("--designs", "400", "designs to ask for"),
            number_option("--batch", "50", "designs at a time"),
            {.names = "--sampler",
             .help = "default: nsga2 with several objectives, else tpe",
             .choices = {"nsga2", "tpe", "random"}},
            {.names = "--seed",
             .value = "N",
             .default_value = "0",
             .help = "the same seed gives the same designs",
             .type = ValueType::kWhole,
             .min = 0},
            {.names = "--state",
             .value = "FOLDER",
             .help = "keeps the batches: a run that was killed continues"},
            {.names = "--on",
             .default_value = "local",
             .help = "who does the forecasts",
             .choices = {"local", "ray", "spark", "dask"}},
            {.names = "--workers",
             .value = "N",
             .help = "threads, or tasks at once; default: all cores",
             .type = ValueType::kWhole},
            {.names = "--engine", .value = "JSON", .help = "settings of the engine"},
            {.names = "-o,--output",
             .value = "FILE",
             .help = "all designs: .parquet, .csv or .json",
             .kind = ValueKind::kFile},
            {.names = "--format",
             .default_value = "table",
             .help = "of the front, on standard output",
             .choices = {"table", "csv", "json"}},
            number_option("--rows", "20", "of the table"),
            {.names = "--quiet", .help = "no progress on standard error"}}}};
}

/// The command line of Python for what was given.
std::vector<std::string> python_words(const Command& command, const Given& given) {
  std::vector<std::string> words;
  for (const CommandOption& option : distinct_options(command.groups())) {
    const auto found = given.find(option.key());
    if (found == given.end()) continue;
    for (const std::string& text : found->second.texts) {
      if (option.is_switch()) {
        if (text == "on") words.push_back(option.flags().back());
      } else if (option.is_argument()) {
        words.push_back(text);
      } else {
        words.push_back(fmt::format("{}={}", option.flags().back(), text));
      }
    }
  }
  return words;
}

/// Replaces this process. Returns where the program cannot be started.
void execute(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  execvp(arguments[0], arguments.data());
}

/// Whether this Python can be started and has the package.
bool has_package(const std::string& python) {
  const pid_t child = fork();
  if (child == 0) {
    execute({python, "-c",
             "import importlib.util, sys; sys.exit(importlib.util.find_spec('tilecast') is None)"});
    _exit(1);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

void run_explore(const Command& command, const Given& given) {
  const char* named = std::getenv("TILECAST_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  if (!has_package(python))
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("explore: the search is part of the Python package, which '{}' does not have: "
                    "pip install 'tilecast[explore]', or name a Python that has it in "
                    "TILECAST_PYTHON",
                    python));
  std::vector<std::string> words = {python, "-m", "tilecast._explore_program"};
  for (std::string& word : python_words(command, given)) words.push_back(std::move(word));
  execute(std::move(words));
  throw Error(ErrorKind::kIo, fmt::format("explore: '{}' cannot be started", python));
}

}  // namespace

Command explore_command() {
  return {.name = "explore",
          .help = "Searches designs of a device that does not exist, under limits (needs Python)",
          .usage = {"SPEC [options]"},
          .groups = explore_groups,
          .examples = {"tilecast explore gpu.json --objective time --objective price",
                       "tilecast explore gpu.json --designs 2000 --state search -o designs.csv"},
          .run = run_explore};
}

}  // namespace tilecast
