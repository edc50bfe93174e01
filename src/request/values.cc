#include "request/values.h"

#include <fmt/format.h>

#include <optional>
#include <type_traits>

#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// nullopt if the text is not a number of the type within the option's range.
template <typename T>
std::optional<T> find_number(const OptionDef& option, std::string_view text) {
  std::optional<T> value;
  if constexpr (std::is_same_v<T, int64_t>)
    value = parse_whole(text);
  else
    value = parse_number<T>(text);
  if (!value) return std::nullopt;
  const auto number = static_cast<double>(*value);
  if (!(number >= option.min && number <= option.max)) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(const OptionDef& option, const std::string& expected,
                         const std::string& text) {
  throw Error(ErrorKind::kInput, fmt::format("`{}`: expected {}, found '{}'", option.name, expected,
                                             shown_name(text)));
}

std::string whole_number(const OptionDef& option) {
  return fmt::format("a whole number from {:.0f} to {:.0f}", option.min, option.max);
}

}  // namespace

int64_t whole_value(const OptionDef& option, const std::string& text) {
  if (const std::optional<int64_t> value = find_number<int64_t>(option, text)) return *value;
  refuse(option, whole_number(option), text);
}

std::pair<int64_t, int64_t> range_value(const OptionDef& option, const std::string& text) {
  const std::string_view all = text;
  const size_t colon = all.find(':');
  const std::optional<int64_t> low = find_number<int64_t>(option, all.substr(0, colon));
  const std::optional<int64_t> high =
      colon == std::string::npos ? low : find_number<int64_t>(option, all.substr(colon + 1));
  if (low && high && *low <= *high) return {*low, *high};
  refuse(option, whole_number(option) + ", or a range LOW:HIGH of two", text);
}

double number_value(const OptionDef& option, const std::string& text) {
  if (const std::optional<double> value = find_number<double>(option, text)) return *value;
  refuse(option, fmt::format("a number from {} to {}", option.min, option.max), text);
}

double clock_value(const OptionDef& option, const std::string& text) {
  if (const std::optional<double> mhz = find_number<double>(option, text)) return *mhz * 1e6;
  refuse(option,
         fmt::format("boost, base, sustained or a number of MHz from {} to {}", option.min,
                     option.max),
         text);
}

std::string number_text(int64_t value) { return std::to_string(value); }

std::string number_text(double value) { return fmt::format("{}", value); }

std::vector<std::pair<std::string, int64_t>> parse_dims(const std::string& text) {
  std::vector<std::pair<std::string, int64_t>> dims;
  if (text.empty()) return dims;
  for (const std::string& part : split(text, ',')) {
    // Names may be expressions: the last '=' divides.
    const size_t equals = part.rfind('=');
    const std::string name = part.substr(0, equals);
    constexpr int64_t kLargest = int64_t{1} << 31;  // as the range of other options
    std::optional<int64_t> size;
    if (equals != std::string::npos && !name.empty())
      size = parse_number<int64_t>(part.substr(equals + 1));
    if (!size || *size < 0 || *size > kLargest)
      throw Error(ErrorKind::kInput,
                  fmt::format("`dim`: expected NAME=N with a size from 0 to 2147483648, found '{}'",
                              shown_name(part)));
    for (const auto& [other, value] : dims) {
      if (other == name)
        throw Error(ErrorKind::kInput, fmt::format("`dim`: '{}' is given twice", shown_name(name)));
    }
    dims.emplace_back(name, *size);
  }
  return dims;
}

}  // namespace tilecast
