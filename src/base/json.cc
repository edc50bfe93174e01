#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::string excerpt(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t last_newline = before.rfind('\n');
  const size_t column =
      before.size() - (last_newline == std::string_view::npos ? 0 : last_newline + 1) + 1;
  return fmt::format("{}:{}", line, column);
}

/// Refuses documents that nest too deep before the recursive parser and destructor meet them.
void check_depth(std::string_view text, const std::string& where) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest)
        throw Error(ErrorKind::kInput, fmt::format("{}:{}: nested deeper than {} levels", where,
                                                   position(text, i), kDeepest));
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  check_depth(text, where);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    std::string reason = error.what();
    const size_t colon = reason.find("syntax error");
    reason = colon == std::string::npos ? "broken text encoding" : reason.substr(colon);
    throw Error(ErrorKind::kInput,
                fmt::format("{}:{}: not JSON: {}", where,
                            position(text, error.byte == 0 ? 0 : error.byte - 1), reason));
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kInput, fmt::format("{}: not JSON: {}", where, error.what()));
  }
}

JsonObject::JsonObject(const Json& json, std::string where)
    : json_(&json), where_(std::move(where)) {
  if (!json.is_object())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected a JSON object, found {}", where_, excerpt(json)));
}

bool JsonObject::has(const std::string& key) const {
  const auto it = json_->find(key);
  return it != json_->end() && !it->is_null();
}

void JsonObject::fail(const std::string& key, const std::string& message) const {
  throw Error(ErrorKind::kInput, fmt::format("{}: '{}': {}", where_, key, message));
}

const Json* JsonObject::find(const std::vector<std::string>& keys, std::string* found) const {
  for (const std::string& key : keys) {
    if (has(key)) {
      *found = key;
      return &(*json_)[key];
    }
  }
  return nullptr;
}

const Json& JsonObject::require(const std::string& key) const {
  if (!has(key)) {
    std::vector<std::string> present;
    for (const auto& item : json_->items()) present.push_back(item.key());
    fail(key, "is missing" + did_you_mean(key, present));
  }
  return (*json_)[key];
}

std::optional<int64_t> JsonObject::optional_integer(const std::vector<std::string>& keys,
                                                    int64_t minimum, int64_t maximum) const {
  std::string key;
  const Json* value = find(keys, &key);
  if (value == nullptr) return std::nullopt;
  const bool too_large =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!value->is_number_integer() || too_large || value->get<int64_t>() < minimum ||
      value->get<int64_t>() > maximum)
    fail(key, fmt::format("expected an integer from {} to {}, found {}", minimum, maximum,
                          excerpt(*value)));
  return value->get<int64_t>();
}

int64_t JsonObject::integer(const std::vector<std::string>& keys, int64_t minimum,
                            int64_t maximum) const {
  const std::optional<int64_t> value = optional_integer(keys, minimum, maximum);
  if (!value) require(keys.front());
  return *value;
}

std::string JsonObject::string(const std::string& key) const {
  const Json& value = require(key);
  if (!value.is_string()) fail(key, "expected a text, found " + excerpt(value));
  return value.get<std::string>();
}

std::optional<std::string> JsonObject::optional_string(const std::vector<std::string>& keys) const {
  std::string key;
  if (find(keys, &key) == nullptr) return std::nullopt;
  return string(key);
}

double JsonObject::number(const std::string& key) const {
  const Json& value = require(key);
  if (!value.is_number()) fail(key, "expected a number, found " + excerpt(value));
  return value.get<double>();
}

bool JsonObject::boolean(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& value = (*json_)[key];
  if (!value.is_boolean()) fail(key, "expected true or false, found " + excerpt(value));
  return value.get<bool>();
}

JsonObject JsonObject::object(const std::string& key) const {
  return JsonObject(require(key), where_ + ": " + key);
}

std::vector<std::string> JsonObject::strings(const std::string& key) const {
  const Json& value = require(key);
  std::vector<std::string> result;
  if (!value.is_array()) fail(key, "expected a list of texts, found " + excerpt(value));
  for (const Json& item : value) {
    if (!item.is_string()) fail(key, "expected a list of texts, found " + excerpt(item) + " in it");
    result.push_back(item.get<std::string>());
  }
  return result;
}

void JsonObject::reject_unknown(const std::vector<std::string>& known) const {
  for (const auto& item : json_->items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      fail(item.key(), "unknown field" + did_you_mean(item.key(), known));
  }
}

}  // namespace tilecast
