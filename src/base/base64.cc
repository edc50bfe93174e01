#include "base/base64.h"

#include <array>
#include <cstdint>

namespace tilecast {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 255;

constexpr std::array<uint8_t, 256> digit_values() {
  std::array<uint8_t, 256> values{};
  values.fill(kNone);
  for (size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}

constexpr std::array<uint8_t, 256> kValues = digit_values();

}  // namespace

std::optional<std::string> from_base64(std::string_view text) {
  constexpr size_t kGroup = 4;  // digits of three bytes
  if (text.size() % kGroup != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / kGroup * 3);
  for (size_t i = 0; i < text.size(); i += kGroup) {
    const size_t digits = i + kGroup == text.size() ? kGroup - padding : kGroup;
    uint32_t group = 0;
    for (size_t j = 0; j < kGroup; ++j) {
      const uint8_t value = j < digits ? kValues[static_cast<uint8_t>(text[i + j])] : 0;
      if (value == kNone) return std::nullopt;
      group = group << 6 | value;
    }
    for (size_t j = 0; j + 1 < digits; ++j)
      bytes += static_cast<char>(static_cast<uint8_t>(group >> (16 - 8 * j)));
  }
  return bytes;
}

}  // namespace tilecast
