#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

using Json = nlohmann::json;

/// Parses JSON text. `where` names the source in messages: "x.json:3:14: not JSON: …".
/// NaN, Infinity and -Infinity, which Python writes into configs, are accepted as values:
/// JsonObject refuses them, naming line and column, where such a field is read. Throws
/// Error{kInput}; nesting deeper than 64 levels (a guard for the stack) and objects that have a key
/// twice are refused.
Json parse_json(std::string_view text, const std::string& where);

/// First byte of the text that stands for a value that is not finite; the rest says what it was and
/// where: "NaN (line 3, column 14)".
inline constexpr char kNotFinite = '\0';
bool is_not_finite(const Json& value);

/// The value as a whole number in [minimum, maximum]; nullopt where it is none. nlohmann converts
/// any number to any type, and what does not fit is undefined.
std::optional<int64_t> whole_number(const Json& value, int64_t minimum, int64_t maximum);

/// Reads the fields of one JSON object with messages that say where, what was expected and what
/// was found. Does not own the object.
class JsonObject {
 public:
  /// Throws Error{kInput} where `json` is not an object.
  JsonObject(const Json& json, std::string where);

  const std::string& where() const { return where_; }
  const Json& json() const { return *json_; }
  bool has(const std::string& key) const;

  /// Integer in [minimum, maximum]; the first of `keys` that is present and not null counts.
  int64_t integer(const std::vector<std::string>& keys, int64_t minimum, int64_t maximum) const;
  std::optional<int64_t> optional_integer(const std::vector<std::string>& keys, int64_t minimum,
                                          int64_t maximum) const;
  std::string string(const std::string& key) const;
  std::optional<std::string> optional_string(const std::vector<std::string>& keys) const;
  double number(const std::string& key) const;
  bool boolean(const std::string& key, bool fallback) const;
  JsonObject object(const std::string& key) const;
  std::vector<std::string> strings(const std::string& key) const;

  /// Throws Error{kInput} naming the first key that is not in `known`.
  void reject_unknown(const std::vector<std::string>& known) const;

  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

 private:
  const Json* find(const std::vector<std::string>& keys, std::string* found) const;
  /// `expected` says what a null stands in place of.
  const Json& require(const std::string& key, const std::string& expected) const;

  const Json* json_;
  std::string where_;
};

}  // namespace tilecast
