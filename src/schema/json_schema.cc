#include "schema/json_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tilecast {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Writes the schemas of records, and keeps those that others refer to.
class SchemaWriter {
 public:
  OrderedJson defs = OrderedJson::object();

  void add_record(OrderedJson& schema, const RecordDef& def) {
    OrderedJson properties = OrderedJson::object(), required = OrderedJson::array();
    for (const FieldDef& field : def.fields) {
      OrderedJson property = type_of(field.type);
      if (field.type.nullable && !field.left_out) property = or_null(std::move(property));
      property["description"] = field.doc;
      if (!field.unit.empty()) property["unit"] = field.unit;
      properties[field.name] = std::move(property);
      if (!field.left_out) required.push_back(field.name);
    }
    schema["type"] = "object";
    schema["properties"] = std::move(properties);
    schema["required"] = std::move(required);
    schema["additionalProperties"] = false;
  }

 private:
  static OrderedJson or_null(OrderedJson schema) {
    if (schema.contains("type") && schema["type"].is_string()) {
      schema["type"] = {schema["type"], "null"};
      return schema;
    }
    return {{"anyOf", OrderedJson::array({std::move(schema), {{"type", "null"}}})}};
  }

  OrderedJson type_of(const FieldType& type) {
    switch (type.kind) {
      case FieldKind::kBool:
        return {{"type", "boolean"}};
      case FieldKind::kWhole:
        return {{"type", "integer"}};
      case FieldKind::kNumber:
        return {{"type", "number"}};
      case FieldKind::kText:
        if (type.words.empty()) return {{"type", "string"}};
        return {{"enum", type.words}};
      case FieldKind::kRecord:
        return reference(*type.record);
      case FieldKind::kList: {
        OrderedJson list = {{"type", "array"}, {"items", item_of(type.items.front())}};
        if (type.length > 0) list["minItems"] = list["maxItems"] = type.length;
        return list;
      }
      case FieldKind::kMap:
        return {{"type", "object"}, {"additionalProperties", item_of(type.items.front())}};
      case FieldKind::kOneOf:
        break;
    }
    OrderedJson one_of = OrderedJson::array();
    for (const FieldType& item : type.items) one_of.push_back(item_of(item));
    return {{"anyOf", std::move(one_of)}};
  }

  OrderedJson item_of(const FieldType& type) {
    return type.nullable ? or_null(type_of(type)) : type_of(type);
  }

  OrderedJson reference(const RecordDef& def) {
    const std::string name(def.name);
    if (!defs.contains(name)) {
      defs[name] = OrderedJson::object();  // first of all: the order of use
      OrderedJson schema = {{"description", def.doc}};
      add_record(schema, def);
      defs[name] = std::move(schema);
    }
    return {{"$ref", "#/$defs/" + name}};
  }
};

}  // namespace

std::string json_schema(const ResultDef& result) {
  SchemaWriter writer;
  OrderedJson schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", fmt::format("{}.schema.json", result.name)},
      {"title", result_command(result)},
  };
  if (result.is_list) {
    schema["type"] = "array";
    writer.add_record(schema["items"], *result.record);
  } else {
    schema["description"] = result.record->doc;
    writer.add_record(schema, *result.record);
  }
  if (!writer.defs.empty()) schema["$defs"] = std::move(writer.defs);
  return schema.dump(1) + "\n";
}

}  // namespace tilecast
