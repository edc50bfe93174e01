#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "report/text_table.h"

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

std::string option_text(const CommandOption& option) {
  std::string text = option.help;
  // A list of choices that is too long for the placeholder is part of the text.
  if (!option.value.empty() && !option.choices.empty())
    text += " (" + join(option.choices, ", ") + ")";
  if (!option.default_value.empty()) text += " [" + option.default_value + "]";
  if (option.required && !option.is_argument()) text += " (required)";
  return text;
}

std::string option_entry(const CommandOption& option, size_t width) {
  std::string left = join(option.flags(), ", ");
  if (option.is_argument())
    left += option.repeated ? " ..." : "";
  else if (!option.is_switch())
    left += " " + option.shown_value() + (option.repeated ? " ..." : "");
  return entry(left, option_text(option), width);
}

std::string wrapped(const std::string& text, size_t width) {
  return join(wrap_text(text, width), "\n") + "\n";
}

size_t help_width() {
  // Long lines are hard to read. The minimum width is that of tables.
  return static_cast<size_t>(std::clamp(output_style("").width, 40, 100));
}

}  // namespace

std::string command_help(const Command& command) {
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
    if (group.options.empty()) continue;
    out +=
        "\n" + paint(join(wrap_text(group.title + ":", width), "\n"), Color::kBold, style) + "\n";
    for (const CommandOption& option : group.options) out += option_entry(option, width);
    if (group.title == "Options") out += entry("-h, --help", "this text", width);
  }
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
      "\nUsage: tilecast COMMAND [options]\n       tilecast COMMAND --help\n\n" +
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
