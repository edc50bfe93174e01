// Completion scripts and their command. The scripts do not call the program: choices, GPUs and
// models are part of their text.

#include <fmt/format.h>

#include <algorithm>

#include "base/shell.h"
#include "base/text.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

/// Names without spaces, which need no quotes in a shell.
std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const GpuEntry& gpu : gpu_catalog()) {
    names.push_back(gpu.id);
    for (const std::string& alias : gpu.aliases) {
      if (alias.find(' ') == std::string::npos) names.push_back(alias);
    }
  }
  return names;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelEntry& model : model_catalog()) names.push_back(model.name);
  return names;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpEntry& op : op_catalog()) names.push_back(op.name);
  return names;
}

/// The possible values; empty: any text.
std::vector<std::string> words_of(const CommandOption& option) {
  static const std::vector<std::string> gpus = gpu_names(), models = model_names(),
                                        ops = op_names();
  if (!option.choices.empty()) return option.choices;
  if (option.kind == ValueKind::kGpu) return gpus;
  if (option.kind == ValueKind::kModel) return models;
  if (option.kind == ValueKind::kOperator) return ops;
  return {};
}

/// A GPU or a model may also be a file.
bool takes_file(const CommandOption& option) {
  return option.kind == ValueKind::kFile || option.kind == ValueKind::kGpu ||
         option.kind == ValueKind::kModel;
}

std::vector<std::string> all_flags(const Command& command) {
  std::vector<std::string> flags = {"-h", "--help"};
  for (const CommandOption& option : distinct_options(command.groups())) {
    if (option.is_argument()) continue;
    for (const std::string& flag : option.flags()) flags.push_back(flag);
  }
  return flags;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  return names;
}

/// `text` with a backslash before each character in `special`.
std::string escaped(const std::string& text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// How bash completes a value: "words='a b'", and whether it suggests files and folders.
std::string bash_action(const CommandOption& option) {
  std::string action;
  const std::vector<std::string> words = words_of(option);
  if (!words.empty()) action = fmt::format("words='{}'", join(words, " "));
  if (takes_file(option)) action += (action.empty() ? "" : "; ") + std::string("files=-f");
  if (option.kind == ValueKind::kFolder) action += "files=-d";
  return action.empty() ? ":" : action;
}

std::string bash_cases(const Command& command) {
  std::string cases;
  std::string positional = ":";
  for (const CommandOption& option : distinct_options(command.groups())) {
    if (option.is_argument()) {
      positional = bash_action(option);
    } else if (!option.is_switch()) {
      std::vector<std::string> patterns;
      for (const std::string& flag : option.flags())
        patterns.push_back(fmt::format("'{} {}'", command.name, flag));
      cases += fmt::format("    {}) {} ;;\n", join(patterns, "|"), bash_action(option));
    }
  }
  return cases +
         fmt::format(
             "    '{} '*)\n      words='{}'\n      [[ $cur == -* ]] || {{ words=; {}; }} ;;\n",
             command.name, join(all_flags(command), " "), positional);
}

std::string zsh_argument(const CommandOption& option) {
  const std::vector<std::string> words = words_of(option);
  std::string action;
  if (!words.empty()) action = fmt::format("({})", join(words, " "));
  if (takes_file(option))
    action = words.empty() ? "_files"
                           : fmt::format(
                                 "{{_alternative \"words\\:name\\:{}\" "
                                 "\"files\\:file\\:_files\"}}",
                                 action);
  if (option.kind == ValueKind::kFolder) action = "_files -/";
  if (action.empty()) action = " ";
  const std::string help = escaped(option.help, "[]:\\");
  const std::string value = escaped(option.shown_value(), ":\\");
  if (option.is_argument()) return shell_quoted(fmt::format(":{}:{}", option.names, action));
  std::string out;
  for (const std::string& flag : option.flags()) {
    const std::string star = option.repeated ? "*" : "";
    const std::string tail = option.is_switch() ? "" : fmt::format(":{}:{}", value, action);
    out +=
        (out.empty() ? "" : " ") + shell_quoted(fmt::format("{}{}[{}]{}", star, flag, help, tail));
  }
  return out;
}

void run_completion(const Command&, const Given& given) {
  const std::string shell = text_of(given, "SHELL");
  const std::string output = text_of(given, "output-file");
  if (shell == "bash") return emit(bash_completion(), output);
  if (shell == "zsh") return emit(zsh_completion(), output);
  if (shell == "fish") return emit(fish_completion(), output);
  emit(manual_page(), output);
}

std::vector<OptionGroup> completion_groups() {
  return {{"Arguments",
           {{.names = "SHELL",
             .help = "shell for which to print a script; man: the manual page (troff)",
             .choices = {"bash", "zsh", "fish", "man"},
             .required = true}}},
          {"Options", {file_option()}}};
}

}  // namespace

std::string bash_completion() {
  std::string cases;
  for (const Command& command : commands()) cases += bash_cases(command);
  return fmt::format(
      R"(# Completes tilecast's command line in bash. Written by 'tilecast completion bash'.
_tilecast() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev= command= words= files=
  (( COMP_CWORD > 1 )) && command=${{COMP_WORDS[1]}}
  (( COMP_CWORD > 0 )) && prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  # bash splits --format=json at the equals sign.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]] && (( COMP_CWORD > 1 )); then
    prev=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "$command $prev" in
    ' '*) words='{} -h --help -V --version' ;;
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ -n $files ]]; then
    compopt -o filenames 2> /dev/null
    local IFS=$'\n'
    COMPREPLY+=($(compgen $files -- "$cur"))
  fi
}}
complete -F _tilecast tilecast
)",
      join(command_names(), " "), cases);
}

std::string zsh_completion() {
  std::string list, cases;
  for (const Command& command : commands()) {
    list +=
        fmt::format("    {}\n", shell_quoted(command.name + ":" + escaped(command.help, ":\\")));
    std::string arguments = shell_quoted("(-h --help)-h[this text]") + " " +
                            shell_quoted("(-h --help)--help[this text]");
    for (const CommandOption& option : distinct_options(command.groups()))
      arguments += " \\\n        " + zsh_argument(option);
    cases +=
        fmt::format("    {})\n      _arguments -s \\\n        {} ;;\n", command.name, arguments);
  }
  return fmt::format(R"(#compdef tilecast
# Completes tilecast's command line in zsh. Written by 'tilecast completion zsh'.
_tilecast() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '(-h --help)'{{-h,--help}}'[this text]' '(-V --version)'{{-V,--version}}'[the version]'
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _tilecast ]]; then
  _tilecast "$@"
else
  compdef _tilecast tilecast
fi
)",
                     list, cases);
}

std::string fish_completion() {
  std::string out =
      "# Completes tilecast's command line in fish. Written by 'tilecast completion fish'.\n"
      "complete -c tilecast -f\n"
      "complete -c tilecast -n __fish_use_subcommand -s h -l help -d 'this text'\n"
      "complete -c tilecast -n __fish_use_subcommand -s V -l version -d 'the version'\n";
  const auto fish_quoted = [](const std::string& text) { return "'" + escaped(text, "'\\") + "'"; };
  for (const Command& command : commands()) {
    out += fmt::format("complete -c tilecast -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       fish_quoted(command.help));
    const std::string start =
        fmt::format("complete -c tilecast -n '__fish_seen_subcommand_from {}'", command.name);
    out += start + " -s h -l help -d 'this text'\n";
    for (const CommandOption& option : distinct_options(command.groups())) {
      std::string line = start;
      if (!option.is_argument()) {
        for (const std::string& flag : option.flags())
          line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
        if (!option.is_switch()) line += " -r";
      }
      if (takes_file(option)) line += " -F";
      const std::vector<std::string> words = words_of(option);
      if (option.kind == ValueKind::kFolder) line += " -a '(__fish_complete_directories)'";
      if (!words.empty()) line += " -a " + fish_quoted(join(words, " "));
      if (!option.is_argument()) line += " -d " + fish_quoted(option.help);
      out += line + "\n";
    }
  }
  return out;
}

Command completion_command() {
  return {.name = "completion",
          .help = "Shell completion script, or the manual page",
          .usage = {"bash|zsh|fish|man [options]"},
          .groups = completion_groups,
          .examples = {"source <(tilecast completion bash)", "tilecast completion man | man -l -"},
          .run = run_completion};
}

}  // namespace tilecast
