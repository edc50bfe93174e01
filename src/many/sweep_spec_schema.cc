#include "many/sweep_spec_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "devices/device_numbers.h"
#include "tilecast/request.h"

namespace tilecast {
namespace {

/// Keys stay in the order in which they are written here.
using Schema = nlohmann::ordered_json;

Schema ref_to(const char* name) { return {{"$ref", fmt::format("#/$defs/{}", name)}}; }

Schema list_of(const Schema& items) {
  return {{"type", "array"}, {"items", items}, {"minItems", 1}};
}

/// A list of the option's words, or values that a range may give.
Schema option_values(const OptionDef& option) {
  Schema words = option.choices;
  if (std::find(words.begin(), words.end(), "on") != words.end())
    words.insert(words.end(), {true, false});
  Schema schema = option.choices.empty() ? ref_to("values") : list_of({{"enum", words}});
  std::string about = option.help;
  if (!option.unit.empty()) about += fmt::format(" [{}]", option.unit);
  schema["description"] = about;
  return schema;
}

Schema parameters() {
  Schema properties = Schema::object(), patterns = Schema::object();
  for (const DeviceNumber& number : device_numbers()) {
    Schema values = ref_to("values");
    values["description"] = number.unit.empty() ? std::string(number.about)
                                                : fmt::format("{} [{}]", number.about, number.unit);
    std::string name(number.name);
    if (name.ends_with('.'))
      patterns["^" + name.substr(0, name.size() - 1) + "\\..+$"] = values;
    else
      properties[name] = values;
  }
  return {{"type", "object"},
          {"description",
           "numbers of the device: of a GPU those below, of an accelerator the "
           "parameters of its description"},
          {"properties", properties},
          {"patternProperties", patterns},
          {"additionalProperties", ref_to("values")}};
}

/// The columns that a spec, a zip or a draw may have.
Schema columns() {
  Schema all = {{"model", list_of({{"type", "string"}})},
                {"gpu", list_of({{"type", "string"}})},
                {"parameters", parameters()}};
  for (const OptionDef& option : request_options()) {
    std::string name = option.name;
    all[name] = option_values(option);
    std::replace(name.begin(), name.end(), '-', '_');
    all[name] = all[option.name];
  }
  return all;
}

Schema range() {
  return {{"type", "object"},
          {"properties",
           {{"from", {{"type", "number"}, {"description", "the first number"}}},
            {"to", {{"type", "number"}, {"description", "the last one, or beyond it"}}},
            {"step",
             {{"type", "number"},
              {"exclusiveMinimum", 0},
              {"description", "between two numbers; 1 for whole numbers without a count"}}},
            {"count",
             {{"type", "integer"},
              {"minimum", 2},
              {"description", "numbers at equal distances, both ends included"}}},
            {"scale",
             {{"enum", {"linear", "log2"}},
              {"description",
               "log2: distances of the logarithms are equal; without a count powers of two "
               "times `from`"}}},
            {"type",
             {{"enum", {"whole", "number"}},
              {"description", "default: as the option or the device has it"}}}}},
          {"required", {"from", "to"}},
          {"additionalProperties", false}};
}

Schema draw() {
  return {{"type", "object"},
          {"properties",
           {{"count", {{"type", "integer"}, {"minimum", 1}}},
            {"seed", {{"type", "integer"}, {"minimum", 0}}},
            {"method",
             {{"enum", {"random", "latin_hypercube"}},
              {"description",
               "latin_hypercube: each column has a number in each of `count` equal "
               "parts of its range"}}},
            {"columns", ref_to("columns")}}},
          {"required", {"count", "seed", "columns"}},
          {"additionalProperties", false}};
}

Schema one_or_more(const Schema& item) { return {{"oneOf", {item, list_of(item)}}}; }

}  // namespace

std::string sweep_spec_schema() {
  const Schema value = {{"type", {"string", "number", "boolean"}}};
  Schema properties = Schema::object();
  properties["zip"] = one_or_more(ref_to("columns"));
  properties["zip"]["description"] = "columns of one length that advance together";
  properties["draw"] = one_or_more(ref_to("draw"));
  properties["draw"]["description"] = "points that are drawn from lists and ranges";
  properties["where"] = one_or_more({{"type", "string"}});
  properties["where"]["description"] = "conditions of points, like \"tp * pp <= 8\"";
  const Schema schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", "sweep_spec.schema.json"},
      {"title", "The spec of tilecast sweep"},
      {"$ref", "#/$defs/options"},
      {"properties", properties},
      {"unevaluatedProperties", false},
      {"$defs",
       {{"values", {{"oneOf", {list_of(value), ref_to("range")}}}},
        {"range", range()},
        {"options", {{"type", "object"}, {"properties", columns()}}},
        {"columns",
         {{"$ref", "#/$defs/options"}, {"unevaluatedProperties", false}, {"minProperties", 1}}},
        {"draw", draw()}}}};
  return schema.dump(1) + "\n";
}

}  // namespace tilecast
