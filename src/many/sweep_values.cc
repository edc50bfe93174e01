#include "many/sweep_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number.h"

namespace tilecast {
namespace {

/// 0.3 for 0.1 + 2 × 0.1: what the ends and steps of a file state has few digits.
double without_rounding_error(double number) {
  return parse_number<double>(fmt::format("{:.12g}", number)).value_or(number);
}

}  // namespace

SweepValues::SweepValues(std::vector<std::string> words, std::vector<double> numbers,
                         SweepType type)
    : words_(std::move(words)), numbers_(std::move(numbers)), type_(type), size_(words_.size()) {}

SweepValues::SweepValues(const SweepRange& range, size_t size)
    : range_(range), type_(range.whole ? SweepType::kWhole : SweepType::kNumber), size_(size) {}

double SweepValues::size_of(const SweepRange& range) {
  if (range.count > 0) return static_cast<double>(range.count);
  if (range.log2 || range.step == 0) return 0;
  // A step that meets the end but for rounding has it.
  constexpr double kRounding = 1e-9;
  return std::floor((range.to - range.from) / range.step * (1 + kRounding) + kRounding) + 1;
}

double SweepValues::number(size_t index) const {
  if (is_list()) return numbers_[index];
  const auto i = static_cast<double>(index);
  if (range_.step > 0) {
    const double value = range_.from + i * range_.step;
    return range_.whole ? value : std::min(without_rounding_error(value), range_.to);
  }
  const double share = i / static_cast<double>(size_ - 1);
  const double value = range_.log2
                           ? range_.from * std::exp2(share * std::log2(range_.to / range_.from))
                           : range_.from + share * (range_.to - range_.from);
  if (range_.whole) return std::clamp(std::round(value), range_.from, range_.to);
  return std::clamp(without_rounding_error(value), range_.from, range_.to);
}

double SweepValues::drawn(double share) const {
  const double from = range_.from, to = range_.to;
  if (range_.whole) {  // on a scale of logarithms: others have a step
    const double value = std::exp2(std::log2(from) + share * (std::log2(to + 1) - std::log2(from)));
    return std::clamp(std::floor(value), from, to);
  }
  const double value =
      range_.log2 ? from * std::exp2(share * std::log2(to / from)) : from + share * (to - from);
  return std::clamp(without_rounding_error(value), from, to);
}

std::string SweepValues::text_of(double number) const {
  return range_.whole ? fmt::format("{}", static_cast<int64_t>(number)) : fmt::format("{}", number);
}

std::string SweepValues::text(size_t index) const {
  return is_list() ? words_[index] : text_of(number(index));
}

}  // namespace tilecast
