// Commands whose answer is a file: training, calibration, sweeps.

#include <fmt/format.h>

#include "cli/show.h"
#include "cli/terminal.h"
#include "command/views.h"

namespace tilecast {
namespace {

/// On standard output: --output-file names what was learned. `after`: below the table.
void show_learned(const Reply& reply, const Given& given, const std::string& after) {
  const std::string format = has(given, "format") ? text_of(given, "format") : "table";
  const std::string text = view(reply.answer, format, output_style("")).value();
  const bool is_table = format == "table";
  emit(is_table ? text + after : text, "", is_table ? reply.warnings : std::vector<std::string>());
}

/// -o names the file of what was learned; this is the format of what is shown.
CommandOption learned_format() {
  CommandOption option = format_option({"table", "json", "html"});
  option.default_value = "table";
  return option;
}

void run_train(const Command& command, const Given& given) {
  const Reply reply = ask_with_progress(command, given);
  std::string weights = text_of(given, "output-file");
  if (std::holds_alternative<CollectiveTrainResult>(reply.answer))
    weights = (std::filesystem::path(weights) / "collectives.json").string();
  show_learned(reply, given, fmt::format("weights: {}\n", weights));
}

void run_calibrate(const Command& command, const Given& given) {
  const bool suggest = has(given, "suggest"),
             measured = has(given, "measurements") || has(given, "trace");
  const std::string output = text_of(given, "output-file");
  if (has(given, "pairs")) {
    if (suggest || measured)
      throw UsageError(
          "calibrate: --pairs is mutually exclusive with --suggest, --measurements and --trace");
    const Reply reply = ask(command, "calibrate_pairs", given);
    return show_learned(reply, given, fmt::format("\nshare with --pairs {}\n", output));
  }
  for (const char* of_pairs : {"jobs", "how", "calibration"}) {
    if (has(given, of_pairs))
      throw UsageError(fmt::format("calibrate: --{} needs --pairs FILE", of_pairs));
  }
  if (suggest && measured)
    throw UsageError("calibrate: --suggest is mutually exclusive with --measurements and --trace");
  if (!suggest && has(given, "candidates"))
    throw UsageError("calibrate: --candidates needs --suggest N");
  if (!suggest && has(given, "model")) throw UsageError("calibrate: --model needs --suggest N");
  if (!suggest && (!measured || output.empty()))
    throw UsageError(
        "calibrate: give --measurements FILE or --trace FILE, and -o FILE; --pairs FILE and -o "
        "FILE; or --suggest N");
  if (suggest) return show(ask(command, "suggest_kernels", given), given, output_style(output));
  const Reply reply = ask(command, "calibrate", given);
  show_learned(reply, given, fmt::format("\nforecast with --calibration {}\n", output));
}

/// The options of all its questions, in the order of the help.
std::vector<OptionGroup> calibrate_groups() {
  std::vector<OptionGroup> groups = question("calibrate").groups();
  std::vector<CommandOption>& options = groups.front().options;
  for (const char* name : {"suggest_kernels", "calibrate_pairs"}) {
    const std::vector<OptionGroup> others = question(name).groups();
    for (CommandOption option : others.front().options) {
      const auto same = [&](const CommandOption& other) { return other.names == option.names; };
      if (std::any_of(options.begin(), options.end(), same)) continue;
      option.required = false;  // of that question alone
      options.insert(options.end() - 2, option);
    }
  }
  return with_options(std::move(groups), {learned_format()});
}

/// Of -o page.html, the rows are beside the page.
void run_sweep(const Command& command, const Given& given) {
  constexpr std::string_view kPage = ".html";
  Given asked = given;
  std::string output = text_of(given, "output-file"), page;
  if (output.ends_with(kPage)) {
    page = output;
    output.replace(output.size() - kPage.size(), kPage.size(), ".csv");
    asked["output-file"] = {.texts = {output}, .model = {}, .gpus = {}};
  }
  const std::string format = has(given, "format") ? text_of(given, "format") : "table";
  if (!page.empty() || format == "html")
    asked["columns"] = {.texts = {"on"}, .model = {}, .gpus = {}};
  const Reply reply = ask_with_progress(command, asked);
  if (!page.empty()) emit(view(reply.answer, "html", output_style(page)).value(), page);
  if (page.empty() || has(given, "format")) show_learned(reply, given, "");
  check_answer(reply);
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .help = std::string(question("train").help),
          .usage = {"--data PATH... -o FOLDER [options]"},
          .groups =
              [] {
                return with_options(question("train").groups(), {learned_format(), quiet_option()});
              },
          .examples = {"tilecast train --data neusight/scripts/asplos/data --exclude-gpu V100 -o "
                       "weights"},
          .run = run_train};
}

Command calibrate_command() {
  return {
      .name = "calibrate",
      .help = std::string(question("calibrate").help),
      .usage = {"--gpu GPU --suggest N [--model MODEL --dtype D --software S] [-o FILE]",
                "--gpu GPU --suggest N --candidates FILE [-o FILE]",
                "--gpu GPU --measurements FILE... -o FILE", "--gpu GPU --trace FILE... -o FILE",
                "--gpu GPU --pairs FILE --jobs FILE [--how HOW] -o FILE"},
      .groups = calibrate_groups,
      .examples =
          {"tilecast calibrate --gpu L40S --suggest 20 --model llama-3-8b --dtype bf16 -o few.csv",
           "sh measure/run.sh --list few.csv   # on that GPU",
           "tilecast calibrate --gpu L40S --measurements few.csv -o l40s.json",
           "tilecast calibrate --gpu L40S --trace trace.json.gz -o l40s.json",
           "tilecast forecast gpt2_large --gpu L40S --calibration l40s.json",
           "tilecast calibrate --gpu L40S --pairs pairs.csv --jobs jobs.json -o pairs.json"},
      .run = run_calibrate};
}

Command sweep_command() {
  return {.name = "sweep",
          .help = std::string(question("sweep").help),
          .usage = {"SPEC -o FILE [options]"},
          .groups =
              [] {
                return with_options(question("sweep").groups(), {learned_format(), quiet_option()});
              },
          .examples = {"tilecast sweep designs.json -o designs.csv",
                       "tilecast sweep servers.json -o servers.jsonl --pareto time,cost",
                       "tilecast sweep servers.json -o servers.html --pareto time,memory"},
          .run = run_sweep};
}

}  // namespace tilecast
