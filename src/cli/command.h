#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilecast {

/// The command line alone shows that something is wrong: exit status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a value is, as far as completion can help with it.
enum class ValueKind { kText, kFile, kFolder, kGpu, kModel, kOperator };

/// One option or argument. Parser, help, completion and manual page read the same entry.
struct CommandOption {
  /// "MODEL" for an argument by position, else flags: "--gpu" or "-o,--output-file".
  std::string names;
  /// What stands for the value in help; "" for a switch, or where `choices` says it.
  std::string value;
  std::string default_value;  ///< default, as text
  std::string help;
  std::vector<std::string> choices = {};  ///< the closed list of values
  ValueKind kind = ValueKind::kText;
  bool required = false;
  bool repeated = false;                    ///< takes any number of values
  std::vector<std::string> old_names = {};  ///< flags that are still read, but not shown

  bool is_argument() const { return names.front() != '-'; }
  bool is_switch() const { return !is_argument() && value.empty() && choices.empty(); }
  /// All flags: {"-o", "--output-file"}.
  std::vector<std::string> flags() const;
  /// The name under which its values are given: "MODEL", "output-file".
  std::string key() const;
  /// What stands for the value in help: "GPU", "table|json".
  std::string shown_value() const;
};

/// Options under one heading of the help. An option may stand in several groups, with other help
/// and another default in each.
struct OptionGroup {
  std::string title;
  std::vector<CommandOption> options;
};

/// Values of the command line by key; a switch has the value "".
using Given = std::map<std::string, std::vector<std::string>>;

struct Command {
  std::string name, help;
  std::vector<std::string> usage;  ///< what follows the name: "MODEL --gpu GPU [options]"
  std::vector<OptionGroup> groups;
  /// Groups behind these that take time to make: not for every start of the program; may be null.
  std::vector<OptionGroup> (*derived_groups)() = nullptr;
  std::vector<std::string> examples;
  std::function<void(const Given&)> run;
};

/// The groups of a command, the derived ones too.
std::vector<OptionGroup> all_groups(const Command& command);

/// The options of all groups, each once; choices and help of those that stand in several groups are
/// joined.
std::vector<CommandOption> distinct_options(const Command& command);

/// All commands, in the order of the help.
const std::vector<Command>& commands();

Command forecast_command();
Command kernel_command();
Command evaluate_command();
Command train_command();
Command calibrate_command();
Command gpus_command();
Command models_command();
Command ops_command();
Command completion_command();

/// Reads the command line and runs the command. Throws UsageError and what the command throws.
void run_command_line(int argc, char** argv);

/// Texts of 'tilecast --help' and 'tilecast COMMAND --help'.
std::string program_help();
std::string command_help(const Command& command);

/// A script for a shell, or the manual page (troff).
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();
std::string manual_page();

}  // namespace tilecast
