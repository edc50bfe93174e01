#include "evaluate/server_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/ascii.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Options = std::map<std::string, std::string>;

/// A text, a number or a truth value as the command line words it.
std::string word_of(const JsonObject& object, const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number()) return value.dump();
  object.fail(key, "expected a text, a number or true");
}

void check_column(const JsonObject& object, const std::string& column) {
  const std::vector<std::string>& known = served_columns();
  if (std::find(known.begin(), known.end(), column) == known.end())
    object.fail(column, "tables of servers have no such column" + did_you_mean(column, known));
}

std::vector<std::pair<std::string, std::vector<std::string>>> match_of(const JsonObject& match) {
  std::vector<std::pair<std::string, std::vector<std::string>>> conditions;
  for (const auto& [column, wanted] : match.json().items()) {
    check_column(match, column);
    std::vector<std::string> values;
    if (!wanted.is_array()) values.push_back(word_of(match, column, wanted));
    if (wanted.is_array())
      for (const Json& value : wanted) values.push_back(word_of(match, column, value));
    conditions.emplace_back(column, std::move(values));
  }
  return conditions;
}

/// The text with each "{column}" replaced by what `cell` says of it.
template <typename Cell>
std::string filled(const std::string& text, const Cell& cell) {
  std::string out;
  size_t at = 0;
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', at)) {
    const size_t close = text.find('}', open);
    if (close == std::string::npos) break;
    out += text.substr(at, open - at);
    out += cell(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return out + text.substr(at);
}

std::vector<std::pair<std::string, std::string>> options_of_rule(const JsonObject& object) {
  std::vector<std::string> known;
  for (const OptionDef& option : request_options())
    if (option.applies_to(RequestKind::kServe)) known.push_back(option.name);
  std::vector<std::pair<std::string, std::string>> options;
  for (const auto& [key, value] : object.json().items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    if (find_option(name, RequestKind::kServe) == nullptr)
      object.fail(key, "servers have no such option" + did_you_mean(name, known));
    const std::string text = word_of(object, key, value);
    filled(text, [&](const std::string& column) {
      check_column(object, column);
      return column;
    });
    options.emplace_back(std::move(name), text);
  }
  return options;
}

ServerRule rule_of(const Json& json, const std::string& where) {
  const JsonObject object(json, where);
  object.reject_unknown({"match", "options", "skip", "source"});
  if (object.string("source").empty()) object.fail("source", "expected where the rule comes from");
  ServerRule rule;
  if (object.has("match")) rule.match = match_of(object.object("match"));
  if (object.has("options")) rule.options = options_of_rule(object.object("options"));
  rule.skip = printable(object.optional_string({"skip"}).value_or(""));
  if (object.has("options") == object.has("skip"))
    throw Error(ErrorKind::kInput, where + ": expected either `options` or `skip`");
  return rule;
}

std::string range_text(const TokenRange& range) {
  return range.low == range.high ? fmt::format("{}", range.low)
                                 : fmt::format("{}:{}", range.low, range.high);
}

/// Columns that are options as they stand.
struct OptionOfColumn {
  std::string_view column, option;
};
constexpr std::array kOptionsOfColumns = {
    OptionOfColumn{"software", "software"},
    OptionOfColumn{"dtype", "dtype"},
    OptionOfColumn{"cache_dtype", "kv-dtype"},
    OptionOfColumn{"tp", "tp"},
    OptionOfColumn{"dp", "dp"},
    OptionOfColumn{"ep", "ep"},
    OptionOfColumn{"requests", "requests"},
    OptionOfColumn{"step_prompt_tokens", "max-num-batched-tokens"},
    OptionOfColumn{"max_num_seqs", "max-num-seqs"},
};

}  // namespace

bool ServerRule::applies_to(const ServedRow& row) const {
  return std::all_of(match.begin(), match.end(), [&](const auto& condition) {
    const auto& [column, values] = condition;
    const auto cell = row.cells.find(column);
    const std::string value = cell == row.cells.end() ? "" : cell->second;
    return std::find(values.begin(), values.end(), value) != values.end();
  });
}

ServerSettings ServerSettings::read(const std::string& file) {
  const bool is_content = file.starts_with('{');
  const std::string where = is_content ? "the settings of servers" : printable(file);
  const Json json = parse_json(is_content ? file : read_file(file), where);
  const JsonObject object(json, where);
  object.reject_unknown({"models", "rules"});
  ServerSettings settings;
  if (object.has("models")) {
    const JsonObject models = object.object("models");
    for (const auto& item : models.json().items())
      settings.models.emplace(
          item.key(), item.value().is_object() ? item.value().dump() : models.string(item.key()));
  }
  const auto rules = json.find("rules");
  if (rules == json.end()) return settings;
  if (!rules->is_array()) object.fail("rules", "expected a list");
  for (size_t i = 0; i < rules->size(); ++i)
    settings.rules.push_back(rule_of((*rules)[i], fmt::format("{}: rules[{}]", where, i)));
  return settings;
}

std::string ServerSettings::why_skipped(const ServedRow& row) const {
  if (!row.left_out.empty()) return row.left_out;
  for (const ServerRule& rule : rules)
    if (!rule.skip.empty() && rule.applies_to(row)) return rule.skip;
  return "";
}

std::vector<GivenOption> ServerSettings::options_of(const ServedRow& row) const {
  const auto cell = [&](std::string_view column) {
    const auto found = row.cells.find(std::string(column));
    return found == row.cells.end() ? std::string() : found->second;
  };
  Options options;
  for (const OptionOfColumn& entry : kOptionsOfColumns)
    options[std::string(entry.option)] = cell(entry.column);
  // "gpt-oss-dev" is the name of an image, no version.
  std::string version = cell("version");
  if (version.size() > 1 && version.front() == 'v' && is_digit(version[1])) version.erase(0, 1);
  if (!version.empty() && is_digit(version.front())) options["software-version"] = version;
  options["concurrency"] = fmt::format("{}", row.clients);
  if (row.prompt) options["prompt"] = range_text(*row.prompt);
  if (row.output) options["output"] = range_text(*row.output);
  for (const ServerRule& rule : rules) {
    if (!rule.applies_to(row)) continue;
    for (const auto& [name, text] : rule.options) options[name] = filled(text, cell);
  }
  std::vector<GivenOption> given;
  for (auto& [name, text] : options)
    if (!text.empty()) given.push_back({name, std::move(text)});
  return given;
}

ModelRef ServerSettings::model_of(const std::string& name) const {
  const auto found = models.find(name);
  if (found != models.end())
    return found->second.starts_with('{') ? model_from_text(found->second, name)
                                          : load_model_ref(found->second);
  try {
    return load_model_ref(name);
  } catch (const Error& error) {
    const std::string bare = without_owner(name);
    if (error.kind() != ErrorKind::kNotFound || bare == name) throw;
    return load_model_ref(bare);
  }
}

}  // namespace tilecast
