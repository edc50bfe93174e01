#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilecast {

/// The number that the whole text is; nullopt if it is none of this type. Independent of the
/// locale.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What a number of this name may be, the ends included.
struct NumberRange {
  const char* key;
  double low, high;
};
/// Throws Error{kInput} that begins with `where`, and for what is no number.
void check_number(const std::string& where, const NumberRange& range, double value);

/// A whole number, which may end in a factor: k, M, G, T (powers of 1,000) or Ki, Mi, Gi, Ti
/// (powers of 1,024); "1.5k" is 1,500. nullopt if the text is none or its value does not fit.
std::optional<int64_t> parse_whole(std::string_view text);

}  // namespace tilecast
