#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "command/option.h"

namespace tilecast {

/// An error that the command line alone shows: exit status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A word after "tilecast": which question it asks, and how it shows the answer.
struct Command {
  std::string name, help;
  std::vector<std::string> usage;  ///< the text after the name: "MODEL --gpu GPU [options]"
  /// Made when needed: that is slow.
  std::function<std::vector<OptionGroup>()> groups;
  std::vector<std::string> examples;
  void (*run)(const Command&, const Given&);
  /// Keys of the options that the short help shows; empty: all.
  std::vector<std::string> essential = {};
};

/// All commands, in the order of the help.
const std::vector<Command>& commands();

/// The commands that are more than a question and a format.
Command forecast_command();
Command trace_command();
Command plan_command();
Command train_command();
Command calibrate_command();
Command tune_command();
Command sweep_command();
Command explore_command();
Command serve_command();
Command mcp_command();
Command completion_command();
Command help_command();

/// Reads the command line and runs the command. Throws UsageError and what the command throws.
void run_command_line(int argc, char** argv);

enum class HelpLength : uint8_t { kShort, kFull };

/// The texts of 'tilecast --help' and 'tilecast COMMAND --help' or '--help-all'.
std::string program_help();
std::string command_help(const Command& command, HelpLength length);

/// A script for a shell, or the manual page (troff).
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();
std::string manual_page();

}  // namespace tilecast
