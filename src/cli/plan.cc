// 'tilecast plan': its pictures and formats.

#include "cli/show.h"
#include "cli/terminal.h"
#include "command/views.h"

namespace tilecast {
namespace {

std::vector<OptionGroup> plan_groups() {
  CommandOption file = file_option();
  file.old_names.clear();  // here, --output is a number of tokens
  return with_options(question("plan").groups(),
                      {{.names = "--stats",
                        .help = "writes the speed of the search to standard error",
                        .type = ValueType::kSwitch},
                       quiet_option(),
                       format_option({"table", "json", "html", "csv", "svg"}),
                       file});
}

void run_plan(const Command& command, const Given& given) {
  const std::string output = text_of(given, "output-file");
  check_file_view(command, given);
  const bool picture = format_of(given) == "svg";
  if (picture && !has(given, "prompt"))
    throw UsageError(
        "svg is the picture of a plan for serving (--prompt): use table, json, html or csv");
  if (has(given, "gpus") && !has(given, "prompt") && format_of(given) == "csv")
    throw UsageError("--gpus with --format csv: give one GPU, or use json or html");
  const Reply reply = ask_with_progress(command, given);
  if (!picture || output.empty() || has(given, "format"))
    return show(reply, given, output_style(output));
  emit(*view(reply.answer, "svg"), output, {});
  Given beside = given;  // the table beside the picture
  beside.erase("output-file");
  show(reply, beside, output_style(""));
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .help = std::string(question("plan").help),
          .usage = {"MODEL --cluster CLUSTER --nodes N --batch N --seq N [options]  # training",
                    "MODEL --gpus GPU,GPU --prompt N --output N --ttft-s S --tpot-s S [options]  # "
                    "serving"},
          .groups = plan_groups,
          .examples = {"tilecast plan llama-3.1-8b --cluster dgx-h100 --nodes 2 --batch 128 --seq "
                       "4096",
                       "tilecast plan llama-3.1-70b --gpus H100,H200 --prompt 2048 --output 512 "
                       "--ttft-s 1 --tpot-s 0.03"},
          .run = run_plan,
          .essential = essential_of("plan", {"format", "output-file", "quiet"})};
}

}  // namespace tilecast
