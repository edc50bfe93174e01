#include "base/number.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tilecast/error.h"

namespace tilecast {

std::optional<int64_t> parse_whole(std::string_view text) {
  if (const std::optional<int64_t> plain = parse_number<int64_t>(text)) return plain;
  const bool binary = text.ends_with('i');
  std::string_view rest = text.substr(0, text.size() - (binary ? 1 : 0));
  if (rest.empty()) return std::nullopt;
  // Lower case k, as in SI; K is what many write.
  constexpr std::string_view kFactors = "kMGT";
  const size_t power = kFactors.find(rest.back() == 'K' ? 'k' : rest.back());
  if (power == std::string_view::npos) return std::nullopt;
  const std::optional<double> number = parse_number<double>(rest.substr(0, rest.size() - 1));
  if (!number) return std::nullopt;
  const double value = *number * std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  // Up to here, a double holds every whole number.
  constexpr double kLargest = int64_t{1} << std::numeric_limits<double>::digits;
  if (!(std::abs(value) <= kLargest) || value != std::floor(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

void check_number(const std::string& where, const NumberRange& range, double value) {
  if (!(value >= range.low && value <= range.high))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {}: expected a number from {:g} to {:g}, found {:g}", where,
                            range.key, range.low, range.high, value));
}

}  // namespace tilecast
