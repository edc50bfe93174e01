#pragma once

#include <charconv>
#include <optional>
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

}  // namespace tilecast
