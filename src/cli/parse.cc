// CLI11 splits the command line. The tables of options define its meaning and all messages.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/version.h"

namespace tilecast {
namespace {

/// Values that CLI11 has read for one command.
struct Target {
  const Command* command = nullptr;
  CLI::App* app = nullptr;
  bool help = false, help_all = false;
  std::vector<CommandOption> options;
  /// Values of each option; a deque, because CLI11 keeps references.
  std::deque<std::vector<std::string>> values;
  std::deque<bool> switches;
};

void add_command(CLI::App& program, const Command& command, bool with_options, Target& target) {
  target.command = &command;
  target.app = program.add_subcommand(command.name, command.help);
  target.app->set_help_flag("");
  target.app->allow_extras();  // reported below, with similar flags
  target.app->add_flag("-h,--help", target.help);
  target.app->add_flag("--help-all", target.help_all);
  if (with_options) target.options = distinct_options(command.groups());
  for (const CommandOption& option : target.options) {
    target.values.emplace_back();
    target.switches.push_back(false);
    std::string names = option.names;
    for (const std::string& old : option.old_names) names += "," + old;
    if (option.is_switch()) {
      target.app->add_flag(names, target.switches.back());
      continue;
    }
    CLI::Option* added = target.app->add_option(names, target.values.back());
    if (option.repeated) continue;
    // Keep all values of an option that is given twice, to report it as an error.
    added->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    added->allow_extra_args(false);
  }
}

std::vector<std::string> long_flags(const Command& command) {
  std::vector<std::string> flags = {"--help", "--help-all"};
  for (const CommandOption& option : distinct_options(command.groups())) {
    if (option.is_argument()) continue;
    for (const std::string& flag : option.flags()) {
      if (flag.starts_with("--")) flags.push_back(flag);
    }
  }
  return flags;
}

/// The commands that have the option, if there are any.
std::string where_known(const std::string& flag) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    const std::vector<std::string> flags = long_flags(command);
    if (std::find(flags.begin(), flags.end(), flag) != flags.end()) names.push_back(command.name);
  }
  return names.empty() ? "" : fmt::format("; it is one of {}", join(names, ", "));
}

[[noreturn]] void refuse_extra(const Command& command, const std::string& extra) {
  if (extra.size() < 2 || extra.front() != '-')
    throw UsageError(
        fmt::format("{}: unexpected argument '{}'{}", command.name, extra, see_help(command)));
  const std::string flag = extra.substr(0, extra.find('='));
  const std::string known = where_known(flag);
  throw UsageError(fmt::format("{}: unknown option {}{}{}", command.name, flag,
                               known.empty() ? did_you_mean(flag, long_flags(command)) : known,
                               see_help(command)));
}

/// Checks one option: it has a value, is not repeated, and is one of the choices.
void check(const Target& target, const CommandOption& option,
           const std::vector<std::string>& values) {
  const std::string flag = option.flags().back();
  if (values.empty()) {
    if (option.required)
      throw UsageError(fmt::format("{}: {} is required{}", target.command->name, flag,
                                   see_help(*target.command)));
    return;
  }
  if (!option.repeated && values.size() > 1) {
    if (option.is_argument()) refuse_extra(*target.command, values[1]);
    throw UsageError(
        fmt::format("{} is given {} times: '{}'", flag, values.size(), join(values, "', '")));
  }
  for (const std::string& value : values) {
    if (value.empty()) throw UsageError(fmt::format("{}: expected a value, found ''", flag));
    if (value.starts_with("--") && target.app->get_option_no_throw(value) != nullptr)
      throw UsageError(fmt::format("{}: expected a value, found the option {}", flag, value));
    const std::vector<std::string>& choices = option.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
      throw UsageError(fmt::format("{}: unknown value '{}'{}; known: {}", flag, value,
                                   did_you_mean(value, choices), join(choices, ", ")));
  }
}

/// Whether a value is the name of a GPU, and no file, whatever lies there.
bool is_name(const CommandOption& option, const std::string& text) {
  return option.kind == ValueKind::kGpu && !is_path(text);
}

/// An output never replaces what the same command reads.
void check_output(const Target& target, const Given& given) {
  const std::string output = text_of(given, "output-file");
  std::error_code code;
  if (output.empty() || !std::filesystem::is_regular_file(output, code)) return;
  for (const CommandOption& option : target.options) {
    const auto found = given.find(option.key());
    if (found == given.end() || option.key() == "output-file" || option.kind == ValueKind::kText)
      continue;
    for (const std::string& text : found->second.texts) {
      for (const std::string& path : split(text, option.list ? ',' : '\0')) {
        if (!is_name(option, path) && std::filesystem::equivalent(path, output, code) && !code)
          throw UsageError(
              fmt::format("-o {}: is the file that {} names, too; write to another "
                          "file",
                          shown_name(output), option.flags().back()));
      }
    }
  }
}

Given given_of(const Target& target) {
  std::vector<std::string> extras = target.app->remaining();
  std::erase(extras, "--");  // CLI11 keeps the separator "--"
  const auto flag = std::find_if(extras.begin(), extras.end(), [](const std::string& extra) {
    return extra.size() > 1 && extra.front() == '-';
  });
  if (!extras.empty()) refuse_extra(*target.command, flag == extras.end() ? extras.front() : *flag);
  Given given;
  for (size_t i = 0; i < target.options.size(); ++i) {
    const CommandOption& option = target.options[i];
    if (option.is_switch()) {
      if (target.switches[i]) given[option.key()].texts = {"on"};
      continue;
    }
    check(target, option, target.values[i]);
    if (!target.values[i].empty()) given[option.key()].texts = target.values[i];
  }
  check_output(target, given);
  return given;
}

[[noreturn]] void refuse_command(const std::vector<std::string>& extras) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  if (extras.empty())
    throw UsageError("expected a command: " + join(names, ", ") + "; see 'tilecast --help'");
  if (extras.front().starts_with("-"))
    throw UsageError(fmt::format("unknown option {}; options follow a command: {}", extras.front(),
                                 join(names, ", ")));
  throw UsageError(fmt::format("unknown command '{}'{}; known: {}", extras.front(),
                               did_you_mean(extras.front(), names), join(names, ", ")));
}

/// Rephrases CLI11's messages "--gpu: 1 required TEXT missing" and "Could not convert: --causal =
/// x" like our other messages; returns any other message unchanged.
std::string message_of(const CLI::ParseError& error) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    const size_t start = message.find("--");
    if (start != std::string::npos)
      return message.substr(start, message.find(' ', start) - start) + " takes no value";
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return message.substr(0, message.find(':')) + ": expected a value";
  return message;
}

}  // namespace

void run_command_line(int argc, char** argv) {
  keep_command_line(argc, argv);
  CLI::App program;
  program.set_help_flag("");
  program.allow_extras();
  program.require_subcommand(0, 1);
  bool help = false, version = false;
  program.add_flag("-h,--help", help);
  program.add_flag("-V,--version", version);
  std::deque<Target> targets;
  for (const Command& command : commands()) {
    // Options of other commands are not created: that would take most of the start-up time.
    const bool named =
        std::find(argv + std::min(argc, 1), argv + argc, command.name) != argv + argc;
    add_command(program, command, named, targets.emplace_back());
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw UsageError(message_of(error));
  }
  if (help) return emit(program_help(), "");
  if (version) return emit(version_text() + "\n", "");
  const std::vector<std::string> extras = program.remaining();
  if (!extras.empty()) refuse_command(extras);
  if (program.get_subcommands().empty()) return emit(program_help(), "");
  for (const Target& target : targets) {
    if (!target.app->parsed()) continue;
    if (target.help_all) return emit(command_help(*target.command, HelpLength::kFull), "");
    if (target.help) return emit(command_help(*target.command, HelpLength::kShort), "");
    return target.command->run(*target.command, given_of(target));
  }
}

}  // namespace tilecast
