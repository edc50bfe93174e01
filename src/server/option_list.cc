#include "server/option_list.h"

#include <algorithm>

#include "base/json.h"
#include "server/openapi.h"

namespace tilecast::server {
namespace {

Json option_json(const CommandOption& option) {
  Json entry = {{"name", option.keyword()},
                {"help", option.help},
                {"required", option.required},
                {"list", option.list || option.repeated}};
  entry["type"] = json_type(option);
  if (!option.default_value.empty()) entry["default"] = option.default_value;
  if (!option.choices.empty()) entry["choices"] = option.choices;
  return entry;
}

Json entry_in_group(const Question& question, const CommandOption& option) {
  Json entry = option_json(option);
  entry["placeholder"] = option.value;
  if (option.type == ValueType::kWhole) {
    entry["min"] = option.min;
    entry["max"] = option.max;
  }
  const std::vector<std::string>& first = question.essential;
  entry["essential"] =
      first.empty() || std::find(first.begin(), first.end(), option.key()) != first.end();
  return entry;
}

}  // namespace

std::string option_list() {
  Json all = Json::object();
  for (const Question& question : questions()) {
    if (question.is_local) continue;
    Json& list = all[std::string(question.name)] = Json::array();
    for (const CommandOption& option : question.index().options()) {
      if (is_of_requests(option.keyword())) list.push_back(option_json(option));
    }
  }
  return all.dump(1) + "\n";
}

std::string grouped_options(const Question& question) {
  Json groups = Json::array();
  for (const OptionGroup& group : question.groups()) {
    Json options = Json::array();
    for (const CommandOption& option : group.options) {
      if (is_of_requests(option.keyword())) options.push_back(entry_in_group(question, option));
    }
    if (!options.empty())
      groups.push_back({{"title", group.title}, {"options", std::move(options)}});
  }
  const Json all = {
      {"name", question.name}, {"help", question.help}, {"groups", std::move(groups)}};
  return all.dump() + "\n";
}

}  // namespace tilecast::server
