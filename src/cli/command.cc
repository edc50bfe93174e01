#include "cli/command.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "cli/values.h"

namespace tilecast {

std::vector<std::string> CommandOption::flags() const { return split(names, ','); }

std::string CommandOption::key() const {
  std::string last = flags().back();
  return last.substr(std::min(last.find_first_not_of('-'), last.size()));
}

std::string CommandOption::shown_value() const {
  return value.empty() ? join(choices, "|") : value;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      forecast_command(),  kernel_command(),    collective_command(), evaluate_command(),
      train_command(),     calibrate_command(), sweep_command(),      plan_command(),
      gpus_command(),      clusters_command(),  models_command(),     ops_command(),
      completion_command()};
  return all;
}

std::vector<OptionGroup> all_groups(const Command& command) {
  std::vector<OptionGroup> groups = command.groups;
  if (command.derived_groups == nullptr) return groups;
  for (OptionGroup& group : command.derived_groups()) groups.push_back(std::move(group));
  return groups;
}

std::vector<CommandOption> distinct_options(const Command& command) {
  std::vector<CommandOption> distinct;
  std::unordered_map<std::string, size_t> index;  // by key
  for (const OptionGroup& group : all_groups(command)) {
    for (const CommandOption& option : group.options) {
      const auto [it, fresh] = index.emplace(option.key(), distinct.size());
      if (fresh) {
        distinct.push_back(option);
        continue;
      }
      CommandOption* same = &distinct[it->second];
      if (same->help != option.help) same->help += "; or: " + option.help;
      for (const std::string& old : option.old_names) {
        if (std::find(same->old_names.begin(), same->old_names.end(), old) == same->old_names.end())
          same->old_names.push_back(old);
      }
      if (same->choices.empty() != option.choices.empty()) same->choices.clear();
      if (same->choices.empty()) continue;
      for (const std::string& choice : option.choices) {
        if (std::find(same->choices.begin(), same->choices.end(), choice) == same->choices.end())
          same->choices.push_back(choice);
      }
    }
  }
  return distinct;
}

}  // namespace tilecast
