// 'tilecast trace', and 'tilecast forecast' of a trace.

#include "cli/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/show.h"
#include "cli/terminal.h"
#include "command/views.h"

namespace tilecast {
namespace {

constexpr const char* kTimeline = "timeline-trace";

/// The report, and its timeline if that is asked for.
void show_trace(const Command& command, const Given& given) {
  constexpr int64_t kRows = 15;
  check_file_view(command, given);
  const TableStyle style = style_of(given, kRows, "operators");
  const Reply reply = ask(command, "trace", given);
  if (has(given, kTimeline))
    emit(*view(ask(command, "trace_timeline", given).answer, "perfetto"), text_of(given, kTimeline),
         {});
  show(reply, given, style);
}

}  // namespace

std::vector<CommandOption> options_of_traced_models() {
  std::vector<CommandOption> options;
  for (const char* key : {"traced-gpu", "trace-host"})
    options.push_back(*question("trace").index().find(key));
  return options;
}

void run_forecast_of_trace(const Command& command, const Given& given) {
  // How an answer is shown.
  const auto is_view = [](const std::string& key) {
    return key == "format" || key == "rows" || key == "output-file" || key == kTimeline;
  };
  Given asked;
  for (const auto& [key, value] : given) {
    if (key == "gpus")
      throw UsageError("--gpus compares forecasts of models; a trace is carried to one GPU: --gpu");
    if (key != "MODEL" && !is_view(key) && question("trace").index().find(key) == nullptr)
      throw UsageError(
          fmt::format("--{} has no effect on a trace of a profiler, which has the work that was "
                      "measured: omit it",
                      key));
    asked[key == "MODEL" ? "TRACE" : key] = value;
  }
  const auto changes = {"gpu", "cluster", "batch", "dtype"};
  if (std::none_of(changes.begin(), changes.end(),
                   [&](const char* key) { return has(given, key); }))
    throw UsageError(fmt::format("{}: --gpu is required{}", command.name, see_help(command)));
  show_trace(command, asked);
}

Command trace_command() {
  return {.name = "trace",
          .help = std::string(question("trace").help),
          .usage = {"TRACE [--gpu GPU] [options]"},
          .groups =
              [] {
                return with_options(
                    question("trace").groups(),
                    {rows_option("15", "operators to show"),
                     {.names = std::string("--") + kTimeline,
                      .value = "FILE",
                      .help = "writes the operations as measured, and as carried to the other GPU, "
                              "to a file for ui.perfetto.dev",
                      .kind = ValueKind::kFile},
                     format_option({"table", "json", "html", "csv"}),
                     file_option()});
              },
          .examples = {"tilecast trace trace.json.gz", "tilecast trace trace.json.gz --gpu B200",
                       "tilecast trace trace.json.gz --batch 2x --dtype fp16",
                       "tilecast trace trace.json.gz --gpu B200 --timeline-trace both.json",
                       "tilecast trace trace.json.gz --cluster dgx-b200 --format json",
                       "tilecast trace before.json.gz --beside after.json.gz"},
          .run = show_trace};
}

}  // namespace tilecast
