#include "devices/sourced.h"

#include <cmath>

#include "devices/ranges.h"

namespace tilecast {

void check_name(const JsonObject& file, const std::string& key, const std::string& name) {
  if (name.empty() || shown_name(name) != name)
    file.fail(key, fmt::format("expected a name of 1 to 80 printable characters, found '{}'",
                               shown_name(name)));
}

std::string name_under(const JsonObject& file, const std::string& key) {
  std::string name = file.string(key);
  check_name(file, key, name);
  return name;
}

void check_source(const JsonObject& entry) {
  if (entry.string("source").empty())
    entry.fail("source", "is empty; state where the value comes from");
}

double sourced_number(const JsonObject& parent, const std::string& key, const std::string& unit,
                      std::string_view range) {
  const JsonObject entry = parent.object(key);
  entry.reject_unknown({"value", "unit", "source"});
  const double value = entry.number("value");
  if (const std::string found = entry.string("unit"); found != unit)
    entry.fail("unit", fmt::format("expected \"{}\", found \"{}\"", unit, shown_name(found)));
  check_source(entry);
  if (!std::isfinite(value) || value <= 0 || value > 1e19)
    entry.fail("value", fmt::format("expected a number above 0 and at most 1e19, found {}", value));
  if (const std::string why = implausible(range.empty() ? key : range, value); !why.empty())
    entry.fail("value", why);
  return value;
}

int64_t sourced_integer(const JsonObject& parent, const std::string& key, const std::string& unit) {
  const double value = sourced_number(parent, key, unit);
  if (value != std::floor(value) || value > 9e15)
    parent.fail(key, fmt::format("expected a whole number, found {}", value));
  return static_cast<int64_t>(value);
}

bool sourced_boolean(const JsonObject& parent, const std::string& key) {
  const JsonObject entry = parent.object(key);
  entry.reject_unknown({"value", "source"});
  check_source(entry);
  if (!entry.has("value")) entry.fail("value", "is missing; expected true or false");
  return entry.boolean("value", false);
}

}  // namespace tilecast
