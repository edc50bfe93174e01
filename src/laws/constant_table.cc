#include "laws/constant_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr auto kUnits = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"_bytes_per_cycle", "B/cycle"},
    {"_flops_per_cycle", "FLOP/cycle"},
    {"_fmas_per_cycle", "FMA/cycle"},
    {"_bytes_per_s", "B/s"},
    {"j_per_flop", "J/FLOP"},
    {"j_per_byte", "J/B"},
    {"_cycles", "cycle"},
    {"_bytes", "B"},
    {"_us", "us"},
    {"_s", "s"},
    {"_hz", "Hz"},
    {"_nm", "nm"},
});

constexpr auto kKinds =
    std::to_array<std::string_view>({"measured", "data sheet", "documented", "fitted", "guess"});

/// Keys of a file, of a group and of a constant that are no constants.
const std::vector<std::string> kFileKeys = {"schema_version", "what", "source", "constants"};
const std::vector<std::string> kConstantKeys = {"value", "unit", "what", "source"};

void check_kind(const JsonObject& entry, const std::string& source) {
  const auto starts = [&](std::string_view kind) { return source.starts_with(kind); };
  if (std::none_of(kKinds.begin(), kKinds.end(), starts))
    entry.fail("source",
               fmt::format("expected how it was found ({}), found \"{}\"",
                           join({kKinds.begin(), kKinds.end()}, ", "), shown_name(source)));
}

std::string text_in(const JsonObject& entry, const std::string& key) {
  std::string text = entry.string(key);
  if (text.empty()) entry.fail(key, "is empty");
  return text;
}

/// The source of the entry, or the one that holds around it.
std::string source_in(const JsonObject& entry, const std::string& around) {
  if (!entry.has("source")) return around;
  std::string source = text_in(entry, "source");
  check_kind(entry, source);
  return source;
}

/// The numbers of a value: a number, a list of numbers or a list of lists of `width` numbers.
std::vector<double> numbers_in(const JsonObject& entry, size_t width, bool is_list) {
  const Json& value = entry.json().at("value");
  std::vector<double> numbers;
  const auto append = [&](const Json& number) {
    if (!number.is_number()) entry.fail("value", "expected numbers");
    numbers.push_back(number.get<double>());
    if (!std::isfinite(numbers.back())) entry.fail("value", "expected finite numbers");
  };
  if (!is_list) {
    append(value);
    return numbers;
  }
  if (!value.is_array()) entry.fail("value", "expected a list");
  for (const Json& item : value) {
    if (width == 1) {
      append(item);
    } else if (!item.is_array() || item.size() != width) {
      entry.fail("value", fmt::format("expected lists of {} numbers", width));
    } else {
      std::for_each(item.begin(), item.end(), append);
    }
  }
  return numbers;
}

void read_constant(const JsonObject& entry, const Constant& constant, const std::string& around) {
  entry.reject_unknown(kConstantKeys);
  if (!entry.has("value")) entry.fail("value", "is missing");
  const std::string_view unit = unit_of_constant(constant.name);
  if (const std::string found = entry.string("unit"); found != unit)
    entry.fail("unit", fmt::format("expected \"{}\", found \"{}\"", unit, shown_name(found)));
  (void)text_in(entry, "what");
  if (source_in(entry, around).empty())
    entry.fail("source", "is missing, here and around it; state how the value was found");
  const auto* list = std::get_if<ConstantList>(&constant.target);
  if (!constant.set(numbers_in(entry, list != nullptr ? list->width : 1, list != nullptr)))
    entry.fail("value", list != nullptr ? "expected at least one item" : "expected a whole number");
}

/// Reads the constants below `prefix`; returns how many.
size_t read_group(const JsonObject& group, const std::string& prefix, const std::string& around,
                  const ConstantTable& table) {
  size_t read = 0;
  for (const auto& item : group.json().items()) {
    if (item.key() == "what" || item.key() == "source") continue;
    const JsonObject entry = group.object(item.key());
    const std::string name = prefix + item.key();
    if (const Constant* constant = table.find(name)) {
      read_constant(entry, *constant, around);
      ++read;
      continue;
    }
    const size_t inside =
        entry.has("value") ? 0 : read_group(entry, name + '.', source_in(entry, around), table);
    if (inside == 0) group.fail(item.key(), "is unknown");
    read += inside;
  }
  return read;
}

}  // namespace

std::vector<double> Constant::values() const {
  if (const auto* list = std::get_if<ConstantList>(&target)) return list->get();
  if (const auto* count = std::get_if<int64_t*>(&target)) return {static_cast<double>(**count)};
  return {*std::get<double*>(target)};
}

bool Constant::set(std::span<const double> values) const {
  if (const auto* list = std::get_if<ConstantList>(&target)) {
    if (values.empty() || values.size() % list->width != 0) return false;
    list->set(values);
    return true;
  }
  if (values.size() != 1) return false;
  if (const auto* count = std::get_if<int64_t*>(&target)) {
    constexpr double kMost = 9e15;
    if (values[0] != std::floor(values[0]) || std::abs(values[0]) > kMost) return false;
    **count = static_cast<int64_t>(values[0]);
    return true;
  }
  *std::get<double*>(target) = values[0];
  return true;
}

const Constant* ConstantTable::find(std::string_view name) const {
  const auto found = std::find_if(constants_.begin(), constants_.end(),
                                  [&](const Constant& constant) { return constant.name == name; });
  return found == constants_.end() ? nullptr : &*found;
}

double& ConstantTable::number(std::string_view name) const {
  if (const Constant* constant = find(name)) {
    if (auto* const* number = std::get_if<double*>(&constant->target)) return **number;
  }
  std::vector<std::string> names;
  for (const Constant& constant : constants_) {
    if (std::holds_alternative<double*>(constant.target)) names.push_back(constant.name);
  }
  throw Error(ErrorKind::kNotFound, fmt::format("'{}' is no number of a law{}", shown_name(name),
                                                did_you_mean(name, names)));
}

void ConstantTable::read(std::string_view law, std::string_view json_text,
                         const std::string& where) const {
  const Json json = parse_json(json_text, where);
  const JsonObject file(json, where);
  file.reject_unknown(kFileKeys);
  (void)file.integer({"schema_version"}, 1, 1);
  (void)text_in(file, "what");
  const std::string prefix = std::string(law) + '.';
  const size_t read = read_group(file.object("constants"), prefix, source_in(file, ""), *this);
  const auto belongs = [&](const Constant& constant) { return constant.name.starts_with(prefix); };
  if (read == static_cast<size_t>(std::count_if(constants_.begin(), constants_.end(), belongs)))
    return;
  for (const Constant& constant : constants_) {
    if (!belongs(constant)) continue;
    const Json* at = &json.at("constants");
    std::string rest = constant.name.substr(prefix.size());
    for (size_t dot = rest.find('.'); at != nullptr && dot != std::string::npos;
         dot = rest.find('.')) {
      const auto inside = at->find(rest.substr(0, dot));
      at = inside == at->end() ? nullptr : &*inside;
      rest = rest.substr(dot + 1);
    }
    if (at == nullptr || !at->contains(rest))
      file.fail("constants", fmt::format("'{}' is missing", constant.name.substr(prefix.size())));
  }
}

std::string_view unit_of_constant(std::string_view name) {
  for (const auto& [end, unit] : kUnits) {
    if (name.ends_with(end)) return unit;
  }
  return "1";
}

std::span<const std::string_view> kinds_of_source() { return kKinds; }

}  // namespace tilecast
