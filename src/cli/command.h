#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilecast {

/// An error that the command line alone shows: exit status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The kind of a value, for shell completion.
enum class ValueKind { kText, kFile, kFolder, kGpu, kModel, kOperator };

/// One option or argument; used by parser, help, completion and manual page.
struct CommandOption {
  /// "MODEL" for a positional argument, else flags: "--gpu" or "-o,--output-file".
  std::string names;
  /// Placeholder of the value in help; "" for a switch or if `choices` are shown.
  std::string value;
  std::string default_value;  ///< the default as text
  std::string help;
  std::vector<std::string> choices = {};  ///< the allowed values
  ValueKind kind = ValueKind::kText;
  bool required = false;
  bool repeated = false;                    ///< may be given several times
  std::vector<std::string> old_names = {};  ///< flags that are accepted but not shown

  bool is_argument() const { return names.front() != '-'; }
  bool is_switch() const { return !is_argument() && value.empty() && choices.empty(); }
  /// All flags: {"-o", "--output-file"}.
  std::vector<std::string> flags() const;
  /// Its key in Given: "MODEL", "output-file".
  std::string key() const;
  /// The placeholder that help shows: "GPU", "table|json".
  std::string shown_value() const;
};

/// Options under one heading of the help. An option may be in several groups, with a different help
/// text and default in each.
struct OptionGroup {
  std::string title;
  std::vector<CommandOption> options;
};

/// Values of the command line by key; a switch has the value "".
using Given = std::map<std::string, std::vector<std::string>>;

struct Command {
  std::string name, help;
  std::vector<std::string> usage;  ///< the text after the name: "MODEL --gpu GPU [options]"
  std::vector<OptionGroup> groups;
  /// Further groups that are slow to create, and so are created only when needed; may be null.
  std::vector<OptionGroup> (*derived_groups)() = nullptr;
  std::vector<std::string> examples;
  std::function<void(const Given&)> run;
};

/// All groups of a command, including derived ones.
std::vector<OptionGroup> all_groups(const Command& command);

/// The options of all groups, each once. Choices and help of an option in several groups are
/// joined.
std::vector<CommandOption> distinct_options(const Command& command);

/// All commands, in the order of the help.
const std::vector<Command>& commands();

Command forecast_command();
Command kernel_command();
Command collective_command();
Command shard_command();
Command evaluate_command();
Command train_command();
Command tune_command();
Command calibrate_command();
Command sweep_command();
Command plan_command();
Command gpus_command();
Command clusters_command();
Command models_command();
Command ops_command();
Command completion_command();

/// Reads the command line and runs the command. Throws UsageError and what the command throws.
void run_command_line(int argc, char** argv);

/// The texts of 'tilecast --help' and 'tilecast COMMAND --help'.
std::string program_help();
std::string command_help(const Command& command);

/// A script for a shell, or the manual page (troff).
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();
std::string manual_page();

}  // namespace tilecast
