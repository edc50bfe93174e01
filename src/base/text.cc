#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace tilecast {
namespace {

/// Levenshtein distance; row by row.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// Three significant digits of a number that is not negative. The limits are where rounding would
/// add a digit ("9.996" is "10.0", not "10.00").
std::string three_digits(double value) {
  if (value >= 999.5) return format_integer(std::llround(value));
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string normalized_name(std::string_view text) {
  std::string result;
  for (unsigned char c : text) {
    if (std::isalnum(c)) result += static_cast<char>(std::tolower(c));
  }
  return result;
}

std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates, size_t limit) {
  // Names longer than this are not typing mistakes, and the distance costs |a|·|b|.
  constexpr size_t kLongestName = 100;
  const std::string wanted = normalized_name(name.substr(0, kLongestName));
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    const std::string other = normalized_name(candidate);
    size_t distance = edit_distance(wanted, other);
    // A part of the name ("A100" of "nvidia-a100-…") is near whatever the rest.
    if (wanted.size() >= 2 && other.find(wanted) != std::string::npos) distance = 1;
    if (distance <= std::max<size_t>(2, wanted.size() / 2))
      ranked.emplace_back(distance, candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (const auto& [distance, candidate] : ranked) {
    if (result.size() == limit) break;
    if (std::find(result.begin(), result.end(), candidate) == result.end())
      result.push_back(candidate);
  }
  return result;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = nearest_names(name, candidates);
  if (near.empty()) return "";
  return "; did you mean '" + join(near, "', '") + "'?";
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string format_integer(int64_t value) {
  std::string digits = fmt::format("{}", value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string format_count(double value) { return three_digits(value); }

// A unit ends where rounding to three digits would show a thousand of it.
std::string format_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds >= 0.9995) return three_digits(seconds) + " s";
  if (seconds >= 0.9995e-3) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds * 1e6) + " us";
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return three_digits(value) + " " + std::string(kUnits[unit]);
}

std::string format_si(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const std::string text = fmt::format("{} {}{}", three_digits(value), kPrefixes[prefix], unit);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace tilecast
