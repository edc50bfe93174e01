#include "server/openapi.h"

#include <fmt/format.h>

#include <algorithm>

#include "schema/json_schema.h"

namespace tilecast::server {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// References inside a schema of a file, as references to the components.
void move_references(OrderedJson& json) {
  constexpr std::string_view kOld = "#/$defs/";
  if (json.is_object() && json.contains("$ref")) {
    const auto ref = json["$ref"].get<std::string>();
    if (ref.starts_with(kOld)) json["$ref"] = "#/components/schemas/" + ref.substr(kOld.size());
  }
  for (auto& part : json) {
    if (part.is_structured()) move_references(part);
  }
}

/// All records of all results by name.
OrderedJson schemas() {
  OrderedJson all = OrderedJson::object();
  for (const ResultDef& result : results()) {
    OrderedJson schema = OrderedJson::parse(json_schema(result));
    move_references(schema);
    if (schema.contains("$defs")) {
      for (auto& [name, def] : schema["$defs"].items()) all[name] = def;
      schema.erase("$defs");
    }
    for (const char* key : {"$schema", "$id"}) schema.erase(key);
    all[result.is_list ? std::string(result.name) : std::string(result.record->name)] = schema;
  }
  all["Problem"] = {{"type", "object"},
                    {"description", "What is wrong, by RFC 9457."},
                    {"properties",
                     {{"type", {{"type", "string"}}},
                      {"title", {{"type", "string"}}},
                      {"status", {{"type", "integer"}}},
                      {"detail", {{"type", "string"}}}}}};
  return all;
}

OrderedJson value_schema(const CommandOption& option) {
  OrderedJson one = {{"type", json_type(option)}};
  if (!option.choices.empty()) one["enum"] = option.choices;
  if (option.kind == ValueKind::kModel || option.kind == ValueKind::kGpu)
    one = {{"type", OrderedJson::array({"string", "object"})}};  // a name, or its content
  if (!option.list && !option.repeated) return one;
  return {{"oneOf", {one, {{"type", "array"}, {"items", one}}}}};
}

OrderedJson answer_schema(const Question& question, const OrderedJson& known) {
  OrderedJson any = OrderedJson::array();
  for (const AnswerType& answer : question.answers) {
    const std::string name(answer.type);
    const OrderedJson ref = {{"$ref", "#/components/schemas/" + name}};
    if (known.contains(name) && std::find(any.begin(), any.end(), ref) == any.end())
      any.push_back(ref);
  }
  if (any.empty()) return OrderedJson::object();
  return any.size() == 1 ? any.front() : OrderedJson{{"anyOf", any}};
}

OrderedJson text_parameter(const char* name, const char* in, const char* what) {
  return {{"name", name},
          {"in", in},
          {"required", std::string_view(in) == "path"},
          {"description", what},
          {"schema", {{"type", "string"}}}};
}

OrderedJson responses(OrderedJson schema) {
  return {{"200",
           {{"description", "the answer"},
            {"content", {{"application/json", {{"schema", std::move(schema)}}}}}}},
          {"default",
           {{"description", "a problem"},
            {"content",
             {{"application/problem+json",
               {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}}}};
}

}  // namespace

std::string_view json_type(const CommandOption& option) {
  switch (option.type) {
    case ValueType::kWhole:
      return "integer";
    case ValueType::kNumber:
      return "number";
    case ValueType::kSwitch:
      return "boolean";
    case ValueType::kText:
      return "string";
  }
  return "string";
}

bool is_of_requests(std::string_view keyword) {
  return std::find(std::begin(kOptionsOfTheService), std::end(kOptionsOfTheService), keyword) ==
         std::end(kOptionsOfTheService);
}

const Question* find_served(std::string_view name) {
  for (const Question& question : questions()) {
    if (question.name == name && !question.is_local) return &question;
  }
  return nullptr;
}

OrderedJson request_schema(const Question& question) {
  OrderedJson properties = OrderedJson::object(), required = OrderedJson::array();
  for (const CommandOption& option : question.index().options()) {
    if (!is_of_requests(option.keyword())) continue;
    OrderedJson property = value_schema(option);
    property["description"] = option.help;
    properties[option.keyword()] = std::move(property);
    if (option.required) required.push_back(option.keyword());
  }
  OrderedJson schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

std::string openapi() {
  const OrderedJson all = schemas();
  OrderedJson paths = OrderedJson::object();
  for (const Question& question : questions()) {
    if (question.is_local || question.name == "data_file") continue;
    const bool is_list = question.index().options().size() <= 3;  // a name, and the limits
    const std::string path = fmt::format("/v1/{}", question.name);
    const OrderedJson parameters = {
        text_parameter("fields", "query", "names of the fields wanted, with commas between them"),
        text_parameter("format", "query",
                       "json, csv, table, svg or html, where the answer has it; or calls: the "
                       "command line and the call of Python that ask the same")};
    OrderedJson& operation = paths[path][is_list ? "get" : "post"];
    operation = {{"operationId", question.name}, {"summary", question.help}};
    if (is_list) {
      operation["responses"] = responses({{"type", "array"}, {"items", OrderedJson::object()}});
      continue;
    }
    operation["parameters"] = parameters;
    operation["requestBody"] = {
        {"required", true},
        {"content", {{"application/json", {{"schema", request_schema(question)}}}}}};
    operation["responses"] = responses(answer_schema(question, all));
  }
  const OrderedJson document = {{"openapi", "3.1.0"},
                                {"info",
                                 {{"title", "Tilecast"},
                                  {"version", "1"},
                                  {"description",
                                   "Forecasts of deep-learning models on GPUs. A request is the "
                                   "JSON that answers echo under `options`."}}},
                                {"paths", std::move(paths)},
                                {"components", {{"schemas", all}}}};
  return document.dump(1) + "\n";
}

}  // namespace tilecast::server
