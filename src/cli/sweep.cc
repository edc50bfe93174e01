#include <algorithm>
#include <thread>

#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/accelerator.h"

namespace tilecast {
namespace {

void run_sweep_command(const Given& given) {
  constexpr int64_t kMostThreads = 256;
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const std::string output = text_of(given, "output-file");
  if (output.empty() || output == "-")
    throw UsageError("-o FILE is missing: a sweep writes its results there, and resumes from them");
  const SweepResult result = run_sweep(text_of(given, "SPEC"), output,
                                       integer_of(given, "threads", cores, 1, kMostThreads));
  emit(result.pareto_front, "", result.warnings);
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .help = "Many forecasts: all combinations of lists",
          .usage = {"SPEC -o FILE [options]"},
          .groups = {{"Arguments",
                      {{.names = "SPEC",
                        .help = "JSON file with lists: model, gpu, options of a forecast, and "
                                "'parameters' of accelerators",
                        .kind = ValueKind::kFile,
                        .required = true}}},
                     {"Options",
                      {output_option(),
                       {.names = "--threads",
                        .value = "N",
                        .default_value = "all cores",
                        .help = "forecasts that run at once"}}}},
          .examples = {"tilecast sweep designs.json -o designs.csv"},
          .run = run_sweep_command};
}

}  // namespace tilecast
