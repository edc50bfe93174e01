#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::string excerpt(const Json& value) {
  if (is_not_finite(value)) return printable(value.get_ref<const std::string&>().substr(1));
  constexpr size_t kShown = 60;
  if (!value.is_structured() || value.size() < 1000)
    return shown_name(value.dump(-1, ' ', false, Json::error_handler_t::replace), kShown);
  return fmt::format("{} of {} entries", value.is_object() ? "an object" : "a list", value.size());
}

}  // namespace

bool is_not_finite(const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return !text.empty() && text.front() == kNotFinite;
}

std::optional<int64_t> whole_number(const Json& value, int64_t minimum, int64_t maximum) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  const auto number = value.get<int64_t>();
  return number >= minimum && number <= maximum ? std::optional(number) : std::nullopt;
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
  throw Error(ErrorKind::kInput, fmt::format("{}: '{}': {}", where_, shown_name(key), message));
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

const Json& JsonObject::require(const std::string& key, const std::string& expected) const {
  if (!has(key)) {
    if (json_->contains(key)) fail(key, "is null, expected " + expected);
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
  const std::optional<int64_t> number = whole_number(*value, minimum, maximum);
  if (!number)
    fail(key, fmt::format("expected an integer from {} to {}, found {}", minimum, maximum,
                          excerpt(*value)));
  return number;
}

int64_t JsonObject::integer(const std::vector<std::string>& keys, int64_t minimum,
                            int64_t maximum) const {
  const std::optional<int64_t> value = optional_integer(keys, minimum, maximum);
  if (value) return *value;
  // A name that is there, but null, is the one that the file means.
  const auto null = std::find_if(keys.begin(), keys.end(),
                                 [&](const std::string& key) { return json_->contains(key); });
  require(null == keys.end() ? keys.front() : *null,
          fmt::format("an integer from {} to {}", minimum, maximum));
  return 0;  // not reached: the value is missing
}

std::string JsonObject::string(const std::string& key) const {
  const Json& value = require(key, "a text");
  if (!value.is_string() || is_not_finite(value))
    fail(key, "expected a text, found " + excerpt(value));
  return value.get<std::string>();
}

std::optional<std::string> JsonObject::optional_string(const std::vector<std::string>& keys) const {
  std::string key;
  if (find(keys, &key) == nullptr) return std::nullopt;
  return string(key);
}

double JsonObject::number(const std::string& key) const {
  const Json& value = require(key, "a number");
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
  return JsonObject(require(key, "an object"), where_ + ": " + shown_name(key));
}

std::vector<std::string> JsonObject::strings(const std::string& key) const {
  const Json& value = require(key, "a list of texts");
  std::vector<std::string> result;
  if (!value.is_array()) fail(key, "expected a list of texts, found " + excerpt(value));
  for (const Json& item : value) {
    if (!item.is_string() || is_not_finite(item))
      fail(key, "expected a list of texts, found " + excerpt(item) + " in it");
    result.push_back(item.get<std::string>());
  }
  return result;
}

void JsonObject::reject_unknown(const std::vector<std::string>& known) const {
  for (const auto& item : json_->items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      fail(item.key(), fmt::format("unknown field{}; known: {}", did_you_mean(item.key(), known),
                                   join(known, ", ")));
  }
}

}  // namespace tilecast
