#include "many/spec_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {

SpecNode::SpecNode(std::string text, std::string where) {
  Json json = parse_json(text, where);
  file_ = std::make_shared<const File>(
      File{.text = std::move(text), .where = std::move(where), .json = std::move(json)});
  json_ = &file_->json;
  if (!json_->is_object())
    throw Error(ErrorKind::kInput,
                fmt::format("{}:{}: expected a JSON object with lists, ranges or draws of 'model', "
                            "'gpu' and options, found {}",
                            this->where(), json_place(file_->text, {}), shown()));
}

std::vector<std::string> SpecNode::keys() const {
  std::vector<std::string> keys;
  for (const auto& item : json_->items()) keys.push_back(item.key());
  return keys;
}

SpecNode SpecNode::at(const std::string& key) const {
  SpecNode node = *this;
  node.json_ = &(*json_)[key];
  node.steps_.push_back({.key = key});
  return node;
}

SpecNode SpecNode::at(size_t index) const {
  SpecNode node = *this;
  node.json_ = &(*json_)[index];
  node.steps_.push_back({.key = "", .index = index, .is_key = false});
  return node;
}

SpecNode SpecNode::at_missing(const std::string& key) const {
  SpecNode node = *this;
  node.steps_.push_back({.key = key});
  return node;
}

std::string SpecNode::key() const {
  const auto step = std::find_if(steps_.rbegin(), steps_.rend(),
                                 [](const JsonStep& other) { return other.is_key; });
  return step == steps_.rend() ? "" : step->key;
}

void SpecNode::require_object(const std::string& what) const {
  if (!json_->is_object()) fail(fmt::format("expected {}, found {}", what, shown()));
}

void SpecNode::require_list(const std::string& what) const {
  if (!json_->is_array() || json_->empty())
    fail(fmt::format("expected {}, found {}", what, shown()));
}

double SpecNode::number() const {
  const double value = json_->is_number() ? json_->get<double>() : NAN;
  if (!std::isfinite(value)) fail("expected a number, found " + shown());
  return value;
}

int64_t SpecNode::whole(int64_t minimum, int64_t maximum) const {
  const std::optional<int64_t> value = whole_number(*json_, minimum, maximum);
  if (!value)
    fail(fmt::format("expected a whole number from {} to {}, found {}", minimum, maximum, shown()));
  return *value;
}

std::string SpecNode::text() const {
  if (!json_->is_string() || is_not_finite(*json_)) fail("expected a text, found " + shown());
  return json_->get<std::string>();
}

void SpecNode::reject_unknown(const std::vector<std::string>& known) const {
  for (const std::string& key : keys())
    if (std::find(known.begin(), known.end(), key) == known.end())
      at(key).fail(
          fmt::format("unknown field{}; known: {}", did_you_mean(key, known), join(known, ", ")));
}

void SpecNode::fail(const std::string& message) const {
  std::vector<std::string> names;
  for (const JsonStep& step : steps_)
    if (step.is_key) names.push_back(shown_name(step.key));
  const std::string name = names.empty() ? "" : fmt::format("'{}': ", join(names, "."));
  throw Error(ErrorKind::kInput,
              fmt::format("{}:{}: {}{}", where(), json_place(file_->text, steps_), name, message));
}

std::string SpecNode::shown() const {
  if (is_not_finite(*json_)) return printable(json_->get_ref<const std::string&>().substr(1));
  if (json_->is_structured() && json_->empty())
    return json_->is_object() ? "an empty object" : "an empty list";
  constexpr size_t kMostItems = 20, kShown = 60;
  if (json_->is_structured() && json_->size() > kMostItems)
    return fmt::format("{} of {} entries", json_->is_object() ? "an object" : "a list",
                       json_->size());
  return shown_name(json_->dump(-1, ' ', false, Json::error_handler_t::replace), kShown);
}

}  // namespace tilecast
