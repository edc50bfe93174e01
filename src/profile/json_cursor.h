#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilecast {

/// Reads JSON text value by value, without a tree of it. It checks what it reads, and skips the
/// rest by brackets and quotes alone: nlohmann's reader, which checks all, takes 20 times as long.
/// simdjson was ruled out, because the version of Debian 12 needs the whole document in memory.
class JsonCursor {
 public:
  /// The text ends in the middle of a value: more may follow.
  struct Ended {};
  /// The text is no JSON here.
  struct Malformed {
    const char* at;
  };

  explicit JsonCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  const char* at() const { return at_; }
  /// The next character after white space. Throws Ended.
  char peek();
  /// Whether the next character is this one, which is passed then.
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) throw Malformed{at_};
  }
  /// The text between the quotes, its escapes as they are.
  std::string_view string();
  /// A value of any kind, as it is written.
  std::string_view value();
  /// The next key of an object whose brace was passed; false at its end. Its value must be read
  /// before the next call.
  bool next_key(std::string_view& key);
  /// Whether an array whose bracket was passed has another element.
  bool next_element();

 private:
  void skip_bracketed();

  const char* at_;
  const char* end_;
};

/// Text as a string of JSON holds it, with its escapes resolved; "\u" beyond ASCII becomes '?'.
std::string unescaped(std::string_view text);

/// The number that the text is, times `scale`; `fallback` if it is none or beyond any time.
int64_t scaled_number(std::string_view text, int64_t scale, int64_t fallback);

}  // namespace tilecast
