#include "command/option.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Adds the values of `from` that `to` lacks.
void add_missing(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& text : from) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
  }
}

std::string in_message(const CommandOption& option) {
  return option.is_argument() ? option.names : "`" + option.key() + "`";
}

void check_choice(const CommandOption& option, const std::string& text) {
  const std::vector<std::string>& choices = option.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) return;
  throw OptionError(fmt::format("{}: unknown value '{}'{}; known: {}", in_message(option),
                                shown_name(text), did_you_mean(text, choices),
                                join(choices, ", ")));
}

}  // namespace

std::vector<std::string> CommandOption::flags() const { return split(names, ','); }

std::string key_of(std::string keyword) {
  std::replace(keyword.begin(), keyword.end(), '_', '-');
  return keyword;
}

std::string CommandOption::key() const {
  const size_t comma = names.rfind(',');
  const std::string last = comma == std::string::npos ? names : names.substr(comma + 1);
  return last.substr(std::min(last.find_first_not_of('-'), last.size()));
}

std::string keyword_of(const std::string& name) {
  std::string keyword;
  for (const char c : name.substr(0, name.find('|'))) {
    if (c == '-' && keyword.empty()) continue;
    keyword += c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return keyword;
}

std::string CommandOption::keyword() const { return keyword_of(key()); }

std::string CommandOption::shown_value() const {
  return value.empty() ? join(choices, "|") : value;
}

std::vector<CommandOption> distinct_options(const std::vector<OptionGroup>& groups) {
  std::vector<CommandOption> distinct;
  std::unordered_map<std::string, size_t> index;  // by key
  for (const OptionGroup& group : groups) {
    for (const CommandOption& option : group.options) {
      const auto [it, fresh] = index.emplace(option.key(), distinct.size());
      if (fresh) {
        distinct.push_back(option);
        continue;
      }
      CommandOption* same = &distinct[it->second];
      if (same->help != option.help) same->help += "; or: " + option.help;
      if (same->type != option.type) same->type = ValueType::kText;
      add_missing(same->old_names, option.old_names);
      if (same->choices.empty() != option.choices.empty()) same->choices.clear();
      if (!same->choices.empty()) add_missing(same->choices, option.choices);
    }
  }
  return distinct;
}

OptionIndex::OptionIndex(const std::vector<OptionGroup>& groups)
    : options_(distinct_options(groups)) {
  for (size_t i = 0; i < options_.size(); ++i) {
    by_key_.emplace(options_[i].key(), i);
    by_keyword_.emplace(options_[i].keyword(), i);
  }
  for (size_t i = 0; i < options_.size(); ++i) {
    for (const std::string& old : options_[i].old_names) by_keyword_.emplace(keyword_of(old), i);
  }
}

const CommandOption* OptionIndex::find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &options_[found->second];
}

const CommandOption* OptionIndex::find_keyword(const std::string& keyword) const {
  const auto found = by_keyword_.find(keyword);
  return found == by_keyword_.end() ? nullptr : &options_[found->second];
}

void OptionIndex::read(const Given& given, void* question) const {
  for (const auto& [key, value] : given) {
    const CommandOption* option = find(key);
    if (option == nullptr) throw OptionError(fmt::format("`{}` is no option", key));
    if (option->set == nullptr) continue;
    if (!option->list) {
      for (const std::string& text : value.texts) check_choice(*option, text);
    }
    option->set(question, *option, value);
  }
  for (const CommandOption& option : options_) {
    if (option.required && !has(given, option.key())) throw MissingOption(in_message(option));
  }
}

bool has(const Given& given, std::string_view key) { return given.find(key) != given.end(); }

std::string text_of(const Given& given, std::string_view key) {
  const auto found = given.find(key);
  return found == given.end() || found->second.texts.empty() ? "" : found->second.texts.back();
}

}  // namespace tilecast
