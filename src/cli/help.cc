#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "report/text_table.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

constexpr size_t kColumn = 24;  ///< where the text of an option starts

/// "  --gpu GPU             id or alias …", wrapped to the terminal's width.
std::string entry(const std::string& left, const std::string& text, size_t width) {
  std::string out = "  " + left;
  // If fewer than two spaces remain between an option and its text, the text starts on the next
  // line.
  if (out.size() + 2 > kColumn) out += "\n";
  std::string blanks(out.back() == '\n' ? kColumn : kColumn - out.size(), ' ');
  for (const std::string& line : wrap_text(text, width - kColumn)) {
    out += blanks + line + "\n";
    blanks = std::string(kColumn, ' ');
  }
  return out;
}

/// In short, what it is without its details.
std::string option_text(const CommandOption& option, HelpLength length) {
  const bool full = length == HelpLength::kFull;
  std::string text = full ? option.help : option.help.substr(0, option.help.find("; "));
  // A list of choices that is too long for the placeholder is part of the text.
  if (full && !option.value.empty() && !option.choices.empty())
    text += " (" + join(option.choices, ", ") + ")";
  if (!option.default_value.empty()) text += " [" + option.default_value + "]";
  if (option.required && !option.is_argument()) text += " (required)";
  return text;
}

std::string option_entry(const CommandOption& option, size_t width, HelpLength length) {
  std::string left = join(option.flags(), ", ");
  if (option.is_argument())
    left += option.repeated ? " ..." : "";
  else if (!option.is_switch())
    left += " " + option.shown_value() + (option.repeated ? " ..." : "");
  return entry(left, option_text(option, length), width);
}

std::string wrapped(const std::string& text, size_t width) {
  return join(wrap_text(text, width), "\n") + "\n";
}

size_t help_width() {
  // Long lines are hard to read. The minimum width is that of tables.
  return static_cast<size_t>(std::clamp(output_style("").width, 40, 100));
}

/// "Families of config.json that are read": what has no command of its own.
std::string families_help() {
  TextTable table;
  table.header = {"model_type", "family"};
  table.fit = {Fit::kWhole, Fit::kWrap};
  for (const FamilyEntry& family : family_catalog())
    table.rows.push_back({family.name, family.description});
  return "Families of models whose config.json is read:\n\n" +
         format_text_table(table, output_style(""));
}

void run_help(const Command&, const Given& given) {
  const std::string wanted = text_of(given, "COMMAND");
  if (wanted.empty()) return emit(program_help(), "");
  if (wanted == "families") return emit(families_help(), "");
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == wanted) return emit(command_help(command, HelpLength::kFull), "");
    names.push_back(command.name);
  }
  const std::string known = join(names, ", ");
  names.emplace_back("families");
  throw UsageError(fmt::format("help: no command '{}'{}; known: {}; or 'families' of models",
                               shown_name(wanted), did_you_mean(wanted, names), known));
}

}  // namespace

Command help_command() {
  return {.name = "help",
          .help = "Help on a command, with all its options",
          .usage = {"[COMMAND]", "families  # of models, by the model_type of their config.json"},
          .groups =
              [] {
                return std::vector<OptionGroup>{
                    {"Arguments", {{.names = "COMMAND", .help = "a command, or families"}}},
                    {"Options", {}}};
              },
          .examples = {"tilecast help plan"},
          .run = run_help};
}

std::string command_help(const Command& command, HelpLength length) {
  const std::vector<std::string>& essential = command.essential;
  const bool all = length == HelpLength::kFull || essential.empty();
  size_t left_out = 0;
  const TableStyle style = output_style("");
  const size_t width = help_width();
  std::string out = wrapped(command.help, width) + "\n";
  std::string before = "Usage: ";
  for (const std::string& usage : command.usage) {
    out +=
        fmt::format("{}tilecast {}{}{}\n", before, command.name, usage.empty() ? "" : " ", usage);
    before = "       ";
  }
  for (const OptionGroup& group : command.groups()) {
    std::string entries;
    for (const CommandOption& option : group.options) {
      const bool shown =
          all || option.is_argument() ||
          std::find(essential.begin(), essential.end(), option.key()) != essential.end();
      if (shown) entries += option_entry(option, width, all ? HelpLength::kFull : length);
      left_out += shown ? 0 : 1;
    }
    if (group.title == "Options") {
      entries += entry("-h, --help", "this text", width);
      if (!essential.empty()) entries += entry("--help-all", "all options", width);
    }
    if (entries.empty()) continue;
    out += "\n" + paint(join(wrap_text(group.title + ":", width), "\n"), Color::kBold, style) +
           "\n" + entries;
  }
  if (left_out > 0)
    out += fmt::format("\n{} more options: tilecast {} --help-all\n", left_out, command.name);
  out += "\n" + paint("Examples:", Color::kBold, style) + "\n";
  for (const std::string& example : command.examples) out += "  " + example + "\n";
  return out;
}

std::string program_help() {
  const TableStyle style = output_style("");
  const size_t width = help_width();
  std::string out =
      wrapped(
          "Forecasts how long a deep-learning model takes and how much memory it needs on a GPU, "
          "from the model's description and the device's data sheet.",
          width) +
      "\nUsage: tilecast COMMAND [options]\n       tilecast help [COMMAND]\n\n" +
      paint("Commands:", Color::kBold, style) + "\n";
  for (const Command& command : commands()) out += entry(command.name, command.help, width);
  out +=
      "\n" + paint("Options:", Color::kBold, style) + "\n" +
      entry("-h, --help", "this help, or that of a command", width) +
      entry("-V, --version", "the version", width) + "\n" +
      paint("Exit status:", Color::kBold, style) + "\n" + entry("0", "done", width) +
      entry("1", "the request cannot be fulfilled: bad file, unknown GPU or model", width) +
      entry("2", "invalid command line", width) + "\n" +
      paint("Environment:", Color::kBold, style) + "\n" +
      entry("COLUMNS", "width of tables; default: the terminal's, 80 in pipes and files", width) +
      entry("NO_COLOR", "no colors; so does CLICOLOR=0", width) +
      entry("CLICOLOR_FORCE", "colors in pipes too", width);
  return out;
}

}  // namespace tilecast
