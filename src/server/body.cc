#include "server/body.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "command/job_source.h"
#include "tilecast/error.h"

namespace tilecast::server {
namespace {

[[noreturn]] void refuse_key(const Question& question, const std::string& key) {
  std::vector<std::string> known;
  for (const CommandOption& option : question.index().options()) known.push_back(option.keyword());
  throw OptionError(fmt::format("{} has no option '{}'{}", question.name, shown_name(key),
                                did_you_mean(key, known)));
}

/// A value of a list, or one alone: a number, a text or an object as text.
std::string text_of(const CommandOption& option, const Json& value) {
  if (value.is_object()) return value.dump();
  if (std::optional<std::string> word = word_of_value(value)) return *std::move(word);
  throw OptionError(fmt::format("`{}`: expected a text, a number, true or false, found {}",
                                option.keyword(), value.type_name()));
}

GivenValue value_of(const CommandOption& option, const Json& value) {
  GivenValue given;
  if (option.kind == ValueKind::kModel && is_content(value)) {
    given.model = model_from_text(value.is_object() ? value.dump() : value.get<std::string>(),
                                  option.keyword());
    return given;
  }
  const auto is_object = [](const Json& part) { return part.is_object(); };
  if (option.kind == ValueKind::kGpu &&
      (value.is_object() ||
       (value.is_array() && std::any_of(value.begin(), value.end(), is_object)))) {
    for (const Json& part : value.is_array() ? value : Json::array({value})) {
      given.gpus.push_back(part.is_object() ? gpu_from_text(part.dump(), option.keyword())
                                            : load_gpu_ref(text_of(option, part)));
      given.texts.push_back(given.gpus.back().id());
    }
    return given;
  }
  if (value.is_array() && (option.repeated || option.list)) {
    for (const Json& part : value) given.texts.push_back(text_of(option, part));
  } else {
    given.texts = {text_of(option, value)};
  }
  return given;
}

}  // namespace

bool is_content(const Json& value) {
  return value.is_object() ||
         (value.is_string() && value.get_ref<const std::string&>().find('\n') != std::string::npos);
}

void check_keys(const Question& question, const JsonObject& body) {
  for (const auto& item : body.json().items()) {
    if (!item.value().is_null() && question.index().find_keyword(item.key()) == nullptr)
      refuse_key(question, item.key());
  }
}

Given given_of(const Question& question, const JsonObject& body) {
  check_keys(question, body);
  Given given;
  for (const auto& item : body.json().items()) {
    if (item.value().is_null()) continue;
    const CommandOption* option = question.index().find_keyword(item.key());
    // A switch that is off is one that was not given.
    if (option->type == ValueType::kSwitch && item.value() == false) continue;
    given[option->key()] = value_of(*option, item.value());
  }
  return given;
}

}  // namespace tilecast::server
