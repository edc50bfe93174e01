#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/ascii.h"

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

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  ///< 0: the text does not start with well-formed UTF-8
};

/// The first character (RFC 3629: shortest form, no surrogates, at most U+10FFFF).
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t value = lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kShortest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kShortest[bytes] || surrogate || value > 0x10FFFF) return {};
  return {value, bytes};
}

/// Acts on a terminal or reorders what it shows: C0 and C1 codes, delete, line and paragraph
/// separators, directional marks (Unicode 15, category Cc and the bidirectional controls).
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/// Takes up to `most` characters from the start of `text`; an escape counts as one.
std::string escaped(std::string_view& text, bool keep_lines, size_t most) {
  std::string result;
  for (size_t count = 0; !text.empty() && count < most; ++count) {
    const CodePoint c = first_code_point(text);
    const size_t bytes = std::max<size_t>(1, c.bytes);
    const bool kept = keep_lines && (c.value == '\n' || c.value == '\t');
    if (c.bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_control(c.value) && !kept) {
      result += c.value < 0x100 ? fmt::format("\\x{:02x}", static_cast<uint32_t>(c.value))
                                : fmt::format("\\u{:04x}", static_cast<uint32_t>(c.value));
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

/// Three significant digits of a number that is not negative. The limits are where rounding would
/// add a digit ("9.996" is "10.0", not "10.00").
std::string three_digits(double value) {
  constexpr double kExact = 1e15;  // larger ones have digits that a double does not
  if (!(value < kExact)) return fmt::format("{:.3g}", value);
  if (value >= 999.5) return format_integer(std::llround(value));
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string normalized_name(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_letter_or_digit(c)) result += to_lower(c);
  }
  return result;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), to_lower);
  return text;
}

std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates, size_t limit) {
  // Names longer than this are not typing mistakes, and the distance costs |a|·|b|.
  constexpr size_t kLongestName = 100;
  const std::string wanted = normalized_name(name.substr(0, kLongestName));
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 2 * kLongestName) continue;
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
  std::vector<std::string> near = nearest_names(name, candidates);
  if (near.empty()) return "";
  for (std::string& candidate : near) candidate = shown_name(candidate);
  return "; did you mean '" + join(near, "', '") + "'?";
}

std::string without_number(const std::string& name) {
  const size_t space = name.rfind(' ');
  const bool numbered = space != std::string::npos && space > 0 &&
                        name.find_first_not_of("#0123456789", space + 1) == std::string::npos;
  return numbered ? name.substr(0, space) : name;
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

std::string printable(std::string_view text) {
  return escaped(text, false, std::string_view::npos);
}

std::string printable_lines(std::string_view text) {
  return escaped(text, true, std::string_view::npos);
}

std::string shown_name(std::string_view text, size_t most) {
  std::string_view rest = text;
  const std::string shown = escaped(rest, false, most);
  return rest.empty() ? shown : escaped(text, false, most - 3) + "...";
}

std::string options_as_flags(std::string_view message) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::string result;
  for (size_t at = 0; at < message.size();) {
    const size_t open = message.find('`', at);
    result += message.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const size_t end = message.find_first_not_of(kLetters, open + 1);
    if (end == std::string_view::npos || message[end] != '`' || end == open + 1) {
      result += '`';
      at = open + 1;
      continue;
    }
    result += "--";
    result += message.substr(open + 1, end - open - 1);
    at = end + 1;
  }
  return result;
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

std::string without_owner(const std::string& model) {
  const size_t dashes = model.find("--"), slash = model.rfind('/');
  if (dashes != std::string::npos) return model.substr(dashes + 2);
  return slash == std::string::npos ? model : model.substr(slash + 1);
}

}  // namespace tilecast
