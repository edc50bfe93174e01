// The manual page, tilecast(1), in the man macros of troff.

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/text.h"
#include "cli/command.h"

namespace tilecast {
namespace {

/// Escapes text for troff: a dot or a quote at the start of a line, backslashes and hyphens.
std::string plain(const std::string& text) {
  std::string out = text.starts_with(".") || text.starts_with("'") ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string option_page(const CommandOption& option) {
  std::vector<std::string> names;
  for (const std::string& flag : option.flags()) names.push_back("\\fB" + plain(flag) + "\\fR");
  std::string head = join(names, ", ");
  if (!option.is_argument() && !option.is_switch())
    head += " \\fI" + plain(option.shown_value()) + "\\fR";
  if (option.repeated) head += " ...";
  std::string text = option.help;
  if (!option.value.empty() && !option.choices.empty())
    text += " (" + join(option.choices, ", ") + ")";
  if (!option.default_value.empty()) text += ". Default: " + option.default_value;
  if (option.required) text += ". Required";
  return fmt::format(".TP\n{}\n{}.\n", head, plain(text));
}

std::string upper_case(std::string text) {
  for (char& c : text) c = to_upper(c);
  return text;
}

std::string command_page(const Command& command) {
  std::string out =
      fmt::format(".SH \"TILECAST {}\"\n{}.\n", upper_case(command.name), plain(command.help));
  for (const std::string& usage : command.usage)
    out += fmt::format(".PP\n.nf\n\\fBtilecast {}\\fR {}\n.fi\n", command.name, plain(usage));
  for (const OptionGroup& group : command.groups()) {
    out += fmt::format(".SS \"{}\"\n", plain(group.title));
    for (const CommandOption& option : group.options) out += option_page(option);
  }
  out += ".SS \"Examples\"\n.nf\n";
  for (const std::string& example : command.examples) out += plain(example) + "\n";
  return out + ".fi\n";
}

}  // namespace

std::string manual_page() {
  std::string list, pages;
  for (const Command& command : commands()) {
    list += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", command.name, plain(command.help));
    pages += command_page(command);
  }
  return fmt::format(
      R"(.\" Written by 'tilecast completion man'.
.TH TILECAST 1 "" "tilecast {}" "User Commands"
.nh
.ad l
.SH NAME
tilecast \- time and memory of deep\-learning models on GPUs
.SH SYNOPSIS
.B tilecast
.I COMMAND
.RI [ options ]
.SH DESCRIPTION
Tilecast forecasts how long a deep\-learning model takes and how much memory it needs on a GPU, from the model's
description and the GPU's data sheet. It runs nothing on a GPU.
.SH COMMANDS
{}.PP
.BR \-h ", " \-\-help
tells the options of each; \fB\-V\fR, \fB\-\-version\fR tells the version.
{}.SH "EXIT STATUS"
.TP
.B 0
Done.
.TP
.B 1
The request cannot be fulfilled, and a file or a look\-up shows it.
.TP
.B 2
The command line alone shows the error.
.PP
Errors and warnings go to standard error, each with the prefix \fBtilecast:\fR. JSON output holds the warnings instead.
.SH ENVIRONMENT
.TP
.B COLUMNS
Width of tables; default: the terminal's, 80 in pipes and files.
.TP
.BR NO_COLOR ", " CLICOLOR=0
No colors.
.TP
.B CLICOLOR_FORCE
Colors in pipes too.
)",
      TILECAST_VERSION, list, pages);
}

}  // namespace tilecast
