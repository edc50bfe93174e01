#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace tilecast {

// The fields of the files in data/: each number is {"value": …, "unit": "B/s", "source": "…"}, each
// word {"value": …, "source": "…"}. All throw Error{kInput} that names the field.

/// Throws unless `name` has 1 to 80 printable characters.
void check_name(const JsonObject& file, const std::string& key, const std::string& name);
/// The name under `key`.
std::string name_under(const JsonObject& file, const std::string& key);

/// Throws where the entry states no source.
void check_source(const JsonObject& entry);

/// The number under `key`, in SI units, above 0. `range` is its key in quantity_ranges(); "": same
/// as `key`.
double sourced_number(const JsonObject& parent, const std::string& key, const std::string& unit,
                      std::string_view range = "");
/// The same for a whole number.
int64_t sourced_integer(const JsonObject& parent, const std::string& key, const std::string& unit);
/// {"value": true, "source": "…"} under `key`.
bool sourced_boolean(const JsonObject& parent, const std::string& key);

/// The word under `key`, one of choice_words(Choice).
template <typename Choice>
Choice sourced_word(const JsonObject& parent, const std::string& key) {
  const JsonObject entry = parent.object(key);
  entry.reject_unknown({"value", "source"});
  check_source(entry);
  const std::string found = entry.string("value");
  const auto words = choice_words(Choice{});
  const auto it = std::find(words.begin(), words.end(), found);
  if (it == words.end())
    entry.fail("value", fmt::format("expected one of {}; found \"{}\"",
                                    join({words.begin(), words.end()}, ", "), shown_name(found)));
  return static_cast<Choice>(it - words.begin());
}

}  // namespace tilecast
