#include "server/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/shell.h"
#include "base/text.h"
#include "server/body.h"

namespace tilecast::server {
namespace {

/// The commands that ask questions of another name; a question is a command's of its own name else.
constexpr std::pair<std::string_view, std::string_view> kCommands[] = {
    {"compare_gpus", "forecast"},
    {"memory_timeline", "forecast --memory-timeline table"},
    {"power_timeline", "forecast --power-timeline table"},
    {"occupancy", ""},
    {"step_operations", ""},
    {"trace_timeline", ""},
    {"suggest_kernels", ""},
    {"data_file", ""}};

std::string_view command_of(const Question& question) {
  for (const auto& [name, command] : kCommands) {
    if (name == question.name) return command;
  }
  return question.name;
}

struct GivenOptionOf {
  const CommandOption* option;
  const Json* value;
};

/// The options of a request, in the order of the question's.
std::vector<GivenOptionOf> options_of(const Question& question, const JsonObject& body) {
  check_keys(question, body);
  std::vector<GivenOptionOf> all;
  for (const CommandOption& option : question.index().options()) {
    const auto found = body.json().find(option.keyword());
    if (found == body.json().end() || found->is_null()) continue;
    if (option.is_switch() && *found == false) continue;  // one that was not given
    all.push_back({&option, &*found});
  }
  return all;
}

/// A value as a word, or the file that has the content.
std::string word_of(const CommandOption& option, const Json& value) {
  if (value.is_object() && value.contains("base64") && value.value("name", Json()).is_string())
    return value.at("name").get<std::string>();
  if (is_content(value)) return option.keyword() + ".json";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string command_words(const GivenOptionOf& given) {
  const CommandOption& option = *given.option;
  const std::string flag = option.is_argument() ? "" : option.flags().back() + " ";
  if (option.is_switch()) return " " + option.flags().back();
  std::vector<std::string> words;
  for (const Json& value : given.value->is_array() ? *given.value : Json::array({*given.value}))
    words.push_back(word_of(option, value));
  if (!option.repeated || option.list) words = {join(words, ",")};
  std::string out;
  for (const std::string& word : words) {
    const bool looks_like_flag = word.starts_with('-');
    out += " " + flag + shell_word(looks_like_flag ? "./" + word : word);
  }
  return out;
}

std::string python_text(const Json& value) {
  if (value.is_boolean()) return value == true ? "True" : "False";
  if (value.is_null()) return "None";
  if (value.is_array()) {
    std::vector<std::string> parts;
    for (const Json& part : value) parts.push_back(python_text(part));
    return "[" + join(parts, ", ") + "]";
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string python_value(const GivenOptionOf& given) {
  const Json& value = *given.value;
  if (!value.is_array()) {
    if (is_content(value)) return python_text(word_of(*given.option, value));
    return python_text(value);
  }
  Json words = Json::array();
  for (const Json& part : value)
    words.push_back(is_content(part) ? Json(word_of(*given.option, part)) : part);
  return python_text(words);
}

std::string command_line(const Question& question, const std::vector<GivenOptionOf>& given) {
  std::string out = fmt::format("tilecast {}", command_of(question));
  for (const bool arguments : {true, false}) {
    for (const GivenOptionOf& one : given) {
      if (one.option->is_argument() == arguments) out += command_words(one);
    }
  }
  return out;
}

std::string python_call(const Question& question, const std::vector<GivenOptionOf>& given) {
  std::vector<std::string> parts;
  bool by_position = true;  // until one is left out
  std::vector<const CommandOption*> placed;
  for (const CommandOption* position : question.positional()) {
    const auto found = std::find_if(given.begin(), given.end(), [&](const GivenOptionOf& one) {
      return one.option->key() == position->key();
    });
    by_position = by_position && found != given.end();
    if (!by_position) break;
    parts.push_back(python_value(*found));
    placed.push_back(found->option);
  }
  for (const GivenOptionOf& one : given) {
    if (std::find(placed.begin(), placed.end(), one.option) == placed.end())
      parts.push_back(one.option->keyword() + "=" + python_value(one));
  }
  return fmt::format("tilecast.{}({})", question.name, join(parts, ", "));
}

}  // namespace

std::string calls_json(const Question& question, const JsonObject& body) {
  const std::vector<GivenOptionOf> given = options_of(question, body);
  const Json calls = {
      {"command_line", command_of(question).empty() ? Json() : Json(command_line(question, given))},
      {"python", python_call(question, given)}};
  return calls.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tilecast::server
