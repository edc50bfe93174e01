#include "api/option_values.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;

std::optional<int64_t> find_positive(const std::string& text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 1 || value > kLargest)
    return std::nullopt;
  return value;
}

}  // namespace

int64_t positive_value(const std::string& option, const std::string& text) {
  if (const std::optional<int64_t> value = find_positive(text)) return *value;
  throw Error(ErrorKind::kInput,
              fmt::format("--{}: expected a whole number from 1 to {}, found '{}'", option,
                          kLargest, shown_name(text)));
}

int64_t positive_value(const std::string& option, const std::string& text, int64_t most) {
  const int64_t value = positive_value(option, text);
  if (value > most)
    throw Error(ErrorKind::kInput,
                fmt::format("--{}: expected at most {}, found {}", option, most, value));
  return value;
}

std::pair<int64_t, int64_t> range_value(const std::string& option, const std::string& text) {
  const size_t colon = text.find(':');
  const std::optional<int64_t> low = find_positive(text.substr(0, colon));
  const std::optional<int64_t> high =
      colon == std::string::npos ? low : find_positive(text.substr(colon + 1));
  if (low && high && *low <= *high) return {*low, *high};
  throw Error(ErrorKind::kInput,
              fmt::format("--{}: expected a whole number from 1 to {}, or a range LOW:HIGH of two, "
                          "found '{}'",
                          option, kLargest, shown_name(text)));
}

double number_value(const std::string& option, const std::string& text, double least, double most) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most))
    throw Error(ErrorKind::kInput, fmt::format("--{}: expected a number from {} to {}, found '{}'",
                                               option, least, most, shown_name(text)));
  return value;
}

double microseconds_value(const std::string& option, const std::string& text) {
  constexpr double kLongest = 1e6;
  return number_value(option, text, 0, kLongest) * 1e-6;
}

}  // namespace tilecast
