#include "profile/json_cursor.h"

#include <cmath>
#include <cstring>

#include "base/number.h"

namespace tilecast {

char JsonCursor::peek() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  if (at_ == end_) throw Ended{};
  return *at_;
}

std::string_view JsonCursor::string() {
  expect('"');
  const char* begin = at_;
  while (true) {
    const void* found = std::memchr(at_, '"', static_cast<size_t>(end_ - at_));
    if (found == nullptr) throw Ended{};
    const char* quote = static_cast<const char*>(found);
    const char* escape = quote;
    while (escape > begin && escape[-1] == '\\') --escape;
    at_ = quote + 1;
    if ((quote - escape) % 2 == 0) return {begin, static_cast<size_t>(quote - begin)};
  }
}

void JsonCursor::skip_bracketed() {
  int64_t depth = 0;
  while (at_ < end_) {
    const char c = *at_;
    if (c == '"') {
      string();
      continue;
    }
    ++at_;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return;
  }
  throw Ended{};
}

std::string_view JsonCursor::value() {
  const char first = peek();
  const char* begin = at_;
  if (first == '"') {
    string();
  } else if (first == '{' || first == '[') {
    skip_bracketed();
  } else {
    while (at_ < end_ && *at_ != ',' && *at_ != '}' && *at_ != ']' && *at_ != ' ' && *at_ != '\n' &&
           *at_ != '\r' && *at_ != '\t')
      ++at_;
    if (at_ == end_) throw Ended{};
    if (at_ == begin) throw Malformed{at_};
  }
  return {begin, static_cast<size_t>(at_ - begin)};
}

bool JsonCursor::next_key(std::string_view& key) {
  if (take('}')) return false;
  take(',');
  if (take('}')) return false;  // a comma before the end, as some writers leave it
  key = string();
  expect(':');
  return true;
}

bool JsonCursor::next_element() {
  if (take(']')) return false;
  take(',');
  return !take(']');
}

std::string unescaped(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'u') {
      constexpr size_t kDigits = 4;
      int code = 0;
      for (size_t d = 0; d < kDigits && i + 1 < text.size(); ++d) {
        const char digit = text[++i];
        code = code * 16 + (digit >= '0' && digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
      }
      out += code >= 0x20 && code < 0x7f ? static_cast<char>(code) : '?';
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
  }
  return out;
}

int64_t scaled_number(std::string_view text, int64_t scale, int64_t fallback) {
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  // Whole part and digits apart: a double would lose nanoseconds of times since 1970.
  const size_t point = text.find('.');
  if (point != std::string_view::npos && text.find_first_of("eE") == std::string_view::npos) {
    const auto whole = parse_number<int64_t>(text.substr(0, point));
    const auto part = parse_number<double>(std::string("0.") + std::string(text.substr(point + 1)));
    constexpr int64_t kMost = int64_t{1} << 62;
    if (!whole || !part || *whole < 0 || *whole > kMost / scale) return fallback;
    return *whole * scale + std::llround(*part * static_cast<double>(scale));
  }
  const auto number = parse_number<double>(text);
  constexpr double kMost = 4e18;
  if (!number || !(std::abs(*number) * static_cast<double>(scale) < kMost)) return fallback;
  if (const auto whole = parse_number<int64_t>(text)) return *whole * scale;
  return std::llround(*number * static_cast<double>(scale));
}

}  // namespace tilecast
