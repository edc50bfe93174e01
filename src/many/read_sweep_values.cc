#include "many/read_sweep_values.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "devices/device_numbers.h"

namespace tilecast {
namespace {

using Kind = JobColumn::Kind;

/// Whole numbers up to here are exact in a double.
constexpr double kLargestWhole = 9007199254740992;  // 2^53

constexpr const char* kListOrRange =
    "a list of at least one value, or a range like {\"from\": 1, \"to\": 64, \"scale\": \"log2\"}";

std::string spec_word(const SpecNode& node) {
  const Json& value = node.json();
  if (value.is_string()) return node.text();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (value.is_number()) return fmt::format("{}", node.number());
  node.fail("expected a list of texts or numbers, found " + node.shown() + " in it");
}

/// Equal for numbers that are written in two ways: 16, "16", "1.6e1".
std::string compared(const std::string& text, Kind kind) {
  if (kind == Kind::kModel || kind == Kind::kGpu) return text;
  const std::optional<double> value = parse_number<double>(text);
  return value ? fmt::format("{}", *value) : text;
}

/// Whether numbers between the ends are whole ones.
bool is_whole(const SpecNode& node, const SweepColumn& column) {
  if (node.has("type")) {
    const std::string type = node.at("type").text();
    if (type != "whole" && type != "number")
      node.at("type").fail("expected whole or number, found " + node.at("type").shown());
    return type == "whole";
  }
  if (column.option != nullptr) return column.option->access.type != OptionType::kNumber;
  if (const DeviceNumber* const number = find_device_number(column.name)) return number->is_whole;
  for (const char* key : {"from", "to", "step"})
    if (node.has(key) && !node.at(key).json().is_number_integer()) return false;
  return true;
}

double end_of(const SpecNode& node, bool whole) {
  const double value = node.number();
  if (whole && (value != std::floor(value) || std::abs(value) > kLargestWhole))
    node.fail("expected a whole number, found " + node.shown());
  return value;
}

void read_steps(const SpecNode& node, bool drawn, SweepRange& range) {
  if (node.has("step")) {
    const SpecNode step = node.at("step");
    if (range.log2) step.fail("a scale of logarithms has a 'count' in place of a step");
    range.step = end_of(step, range.whole);
    if (range.step <= 0) step.fail("expected more than 0, found " + step.shown());
  }
  if (node.has("count")) {
    const SpecNode count = node.at("count");
    if (drawn) count.fail("numbers are drawn between the ends: the draw has the count");
    if (range.step > 0) count.fail("the range has a 'step': leave one of them out");
    range.count = count.whole(2, static_cast<int64_t>(SweepSpec::kMostPoints));
    if (range.whole && static_cast<double>(range.count) > range.to - range.from + 1)
      count.fail(fmt::format("there are {} whole numbers from {} to {}, fewer than the count",
                             range.to - range.from + 1, range.from, range.to));
  }
  if (range.whole && !range.log2 && range.count == 0 && range.step == 0) range.step = 1;
}

/// Numbers of a scale that need a list: powers of two, and what rounding makes equal.
SweepValues listed(const SpecNode& node, const SweepRange& range) {
  constexpr int64_t kMostListed = 100'000;
  if (range.count > kMostListed)
    node.at("count").fail(
        fmt::format("expected at most {} whole numbers on a scale of "
                    "logarithms, found {}; give a range with a step",
                    kMostListed, range.count));
  std::vector<double> numbers;
  if (range.count == 0) {
    for (double value = range.from; value <= range.to; value *= 2) numbers.push_back(value);
  } else {
    const SweepValues rounded(range, static_cast<size_t>(range.count));
    for (size_t i = 0; i < rounded.size(); ++i)
      if (const double value = rounded.number(i); numbers.empty() || value > numbers.back())
        numbers.push_back(value);
  }
  const SweepValues texts(range, numbers.size());
  std::vector<std::string> words;
  for (const double number : numbers) words.push_back(texts.text_of(number));
  return {std::move(words), std::move(numbers),
          range.whole ? SweepType::kWhole : SweepType::kNumber};
}

SweepValues values_of(const SpecNode& node, bool drawn, const SweepRange& range) {
  if (!drawn && range.log2 && (range.count == 0 || range.whole)) return listed(node, range);
  const double size = SweepValues::size_of(range);
  if (!drawn && size == 0)
    node.fail("expected a 'step' or a 'count' of numbers, found " + node.shown());
  if (drawn && size > kLargestWhole)
    node.fail(fmt::format("has {:.3g} values; at most {:.3g} can be drawn from: give a larger step",
                          size, kLargestWhole));
  if (!drawn && size > SweepSpec::kMostPoints)
    node.fail(
        fmt::format("has {:.3g} values; a sweep has at most {:.3g} points: give a larger "
                    "step, or a 'count'",
                    size, SweepSpec::kMostPoints));
  return {range, static_cast<size_t>(size)};
}

SweepValues read_range(const SpecNode& node, const SweepColumn& column, bool drawn) {
  node.reject_unknown({"from", "to", "step", "count", "scale", "type"});
  if (column.option != nullptr && !column.option->choices.empty())
    node.fail(fmt::format("expected a list of the words {}, found a range",
                          join(column.option->choices, ", ")));
  for (const char* needed : {"from", "to"})
    if (!node.has(needed)) node.at_missing(needed).fail("is missing: an end of the range");
  SweepRange range;
  range.whole = is_whole(node, column);
  range.from = end_of(node.at("from"), range.whole);
  range.to = end_of(node.at("to"), range.whole);
  if (range.to <= range.from)
    node.at("to").fail(
        fmt::format("expected more than 'from', {}, found {}", range.from, node.at("to").shown()));
  if (!std::isfinite(range.to - range.from))
    node.at("to").fail("is too far from 'from', found " + node.at("to").shown());
  if (node.has("scale")) {
    const std::string scale = node.at("scale").text();
    if (scale != "linear" && scale != "log2")
      node.at("scale").fail("expected linear or log2, found " + node.at("scale").shown());
    range.log2 = scale == "log2";
  }
  if (range.log2 && range.from <= 0)
    node.at("from").fail("expected more than 0 on a scale of logarithms, found " +
                         node.at("from").shown());
  if (range.log2 && !std::isfinite(range.to / range.from))
    node.at("to").fail("is too far from 'from', found " + node.at("to").shown());
  read_steps(node, drawn, range);
  return values_of(node, drawn, range);
}

}  // namespace

double number_of_word(const std::string& word) {
  if (const auto number = parse_number<double>(word)) return *number;
  const std::optional<int64_t> whole = parse_whole(word);
  return whole ? static_cast<double>(*whole) : NAN;
}

SweepValues read_sweep_values(const SpecNode& node, const SweepColumn& column, ValuesOf use) {
  if (node.json().is_object() && column.kind != Kind::kModel && column.kind != Kind::kGpu)
    return read_range(node, column, use == ValuesOf::kDraw);
  node.require_list(column.kind == Kind::kModel || column.kind == Kind::kGpu
                        ? "a list of at least one value"
                        : kListOrRange);
  std::vector<std::string> words;
  std::vector<double> numbers;
  std::set<std::string> seen;
  bool all_whole = true, all_numbers = true;
  for (size_t i = 0; i < node.json().size(); ++i) {
    const SpecNode item = node.at(i);
    words.push_back(spec_word(item));
    all_whole = all_whole && item.json().is_number() && parse_number<int64_t>(words.back());
    all_numbers = all_numbers && item.json().is_number();
    numbers.push_back(number_of_word(words.back()));
    if (use == ValuesOf::kList && !seen.insert(compared(words.back(), column.kind)).second)
      item.fail(fmt::format("lists '{}' twice", shown_name(words.back())));
  }
  return {std::move(words), std::move(numbers),
          all_whole     ? SweepType::kWhole
          : all_numbers ? SweepType::kNumber
                        : SweepType::kText};
}

}  // namespace tilecast
