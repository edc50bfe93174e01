#include "accelerator/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

Expression expression_of(const Json& value, const std::string& where) {
  if (value.is_number()) return Expression(value.get<double>());
  if (value.is_string() && !is_not_finite(value))
    return Expression::parse(value.get<std::string>(), where);
  throw Error(ErrorKind::kInput, where + ": expected a number or an expression in quotes");
}

}  // namespace

std::optional<double> FieldReader::parameter(std::string_view name) const {
  for (const Parameter& parameter : parameters_)
    if (parameter.name == name) return parameter.value;
  return std::nullopt;
}

double FieldReader::number(const Json& value, const std::string& where,
                           const ParameterValues& index) const {
  const auto lookup = [&](std::string_view name) -> std::optional<double> {
    const auto it = index.find(std::string(name));
    return it == index.end() ? parameter(name) : std::optional(it->second);
  };
  return expression_of(value, where).evaluate(lookup, where);
}

Expression FieldReader::expression(const JsonObject& object, const std::string& key,
                                   const std::string& unit) const {
  if (object.has(key) && !object.json()[key].is_object())
    object.fail(key,
                fmt::format("expected {{\"value\": …, \"unit\": \"{}\", \"source\": …}}, found "
                            "{}",
                            unit, shown_name(object.json()[key].dump())));
  const JsonObject entry = object.object(key);
  entry.reject_unknown({"value", "unit", "source"});
  if (const std::string found = entry.string("unit"); found != unit)
    entry.fail("unit", fmt::format("expected \"{}\"{}, found \"{}\"", unit,
                                   unit == "1" ? " (a count or a share)" : "", shown_name(found)) +
                           "; state the value in this unit");
  if (entry.string("source").empty())
    entry.fail("source", "is empty; state where the value comes from, or begin with 'guess:'");
  if (!entry.has("value")) entry.fail("value", "is missing");
  return expression_of(entry.json()["value"], entry.where());
}

double FieldReader::quantity(const JsonObject& object, const std::string& key,
                             const std::string& unit, double least, double most) const {
  const std::string where = object.where() + ": " + key;
  const double value = expression(object, key, unit)
                           .evaluate([&](std::string_view name) { return parameter(name); }, where);
  if (value < least || value > most)
    object.fail(key, fmt::format("expected a value from {} to {}{}{}, found {}", least, most,
                                 unit == "1" ? "" : " ", unit == "1" ? "" : unit, value));
  return value;
}

double FieldReader::quantity_or(const JsonObject& object, const std::string& key,
                                const std::string& unit, double fallback, double least,
                                double most) const {
  return object.has(key) ? quantity(object, key, unit, least, most) : fallback;
}

std::vector<Parameter> read_parameters(const JsonObject& file, const ParameterValues& values) {
  std::vector<Parameter> parameters;
  std::vector<std::string> names;
  if (file.has("parameters")) {
    // The order of a JSON object is that of its keys: a parameter may use those before it.
    const JsonObject list = file.object("parameters");
    for (const auto& item : list.json().items()) {
      const JsonObject entry = list.object(item.key());
      entry.reject_unknown({"value", "unit", "source", "min", "max", "fit"});
      if (entry.string("source").empty()) entry.fail("source", "is empty");
      entry.string("unit");
      if (!entry.has("value")) entry.fail("value", "is missing");
      const FieldReader reader(parameters);
      Parameter parameter{.name = item.key()};
      const auto given = values.find(item.key());
      parameter.value = given != values.end()
                            ? given->second
                            : reader.number(entry.json()["value"], entry.where() + ": value");
      parameter.min = entry.number("min");
      parameter.max = entry.number("max");
      if (!(parameter.value >= parameter.min && parameter.value <= parameter.max))
        list.fail(item.key(), fmt::format("expected a value from {} to {}, found {}", parameter.min,
                                          parameter.max, parameter.value));
      if (entry.has("fit"))
        for (const Json& value : entry.json()["fit"])
          parameter.fit.push_back(reader.number(value, entry.where() + ": fit"));
      parameters.push_back(parameter);
      names.push_back(item.key());
    }
  }
  for (const auto& [name, value] : values) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: unknown parameter '{}'{}; it has: {}", file.where(),
                            shown_name(name), did_you_mean(name, names), join(names, ", ")));
  }
  return parameters;
}

Ticks ticks_of(double cycles, const std::string& where) {
  if (!(cycles >= 0) || cycles > kMostCycles)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected a time from 0 to {:g} cycles, found {:g}", where,
                            kMostCycles, cycles));
  return static_cast<Ticks>(std::llround(cycles * static_cast<double>(kTicksPerCycle)));
}

}  // namespace tilecast::accelerator
