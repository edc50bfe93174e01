#include "importers/huggingface/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/family.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kLargestImage = 1 << 16;
constexpr size_t kLongestConfigList = 1000;  // blocks of a model; published ones have some dozens

}  // namespace

std::vector<int64_t> integers(const JsonObject& config, const std::string& key, int64_t minimum,
                              int64_t maximum) {
  if (!config.has(key)) config.fail(key, "is missing; expected a list of whole numbers");
  const Json& list = config.json()[key];
  if (!list.is_array() || list.empty() || list.size() > kLongestConfigList)
    config.fail(
        key, fmt::format("expected a list of 1 to {} whole numbers, found {}", kLongestConfigList,
                         list.is_array() ? fmt::format("{} elements", list.size())
                                         : std::string(list.type_name())));
  std::vector<int64_t> values;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<int64_t> value = whole_number(list[i], minimum, maximum);
    if (!value)
      config.fail(fmt::format("{}[{}]", key, i),
                  fmt::format("expected a whole number from {} to {}, found {}", minimum, maximum,
                              shown_name(list[i].dump())));
    values.push_back(*value);
  }
  return values;
}

std::vector<int64_t> integers_like(const JsonObject& config, const std::string& key,
                                   const std::string& other, size_t count, int64_t maximum) {
  std::vector<int64_t> values = integers(config, key, 1, maximum);
  if (values.size() != count)
    config.fail(key, fmt::format("expected {} numbers, as many as in '{}', found {}", count, other,
                                 values.size()));
  return values;
}

double factor(const JsonObject& config, const std::string& key, double fallback) {
  if (!config.has(key)) return fallback;
  constexpr double kLargestFactor = 1000;
  const double value = config.number(key);
  if (!(value > 0 && value <= kLargestFactor))
    config.fail(
        key, fmt::format("expected a number above 0, at most {}, found {}", kLargestFactor, value));
  return value;
}

std::string class_name(const JsonObject& config, const std::string& fallback) {
  if (!config.has("architectures")) return fallback;
  const std::vector<std::string> names = config.strings("architectures");
  return names.empty() ? fallback : names.front();
}

int64_t label_count(const JsonObject& config) {
  if (const auto given = config.optional_integer({"num_labels"}, 1, kLargestConfigSize))
    return *given;
  const Json labels = config.json().value("id2label", Json::object());
  const bool named = labels.is_object() && !labels.empty();
  return named ? static_cast<int64_t>(labels.size()) : 2;
}

int64_t image_side(const JsonObject& config) {
  const std::string key = "image_size";
  if (!config.has(key) || !config.json()[key].is_array())
    return config.integer({key}, 1, kLargestImage);
  const std::vector<int64_t> sides = integers(config, key, 1, kLargestImage);
  if (std::any_of(sides.begin(), sides.end(), [&](int64_t side) { return side != sides[0]; }))
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: '{}': images of {} x {}; only square ones are supported",
                            config.where(), key, sides.front(), sides.back()));
  return sides.front();
}

int64_t image_side_or(const JsonObject& config, int64_t fallback) {
  return config.has("image_size") ? image_side(config) : fallback;
}

}  // namespace tilecast
