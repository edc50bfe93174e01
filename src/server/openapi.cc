#include "server/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

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

/// A request for each question, which a test asks.
constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
    {"forecast", R"({"model": "llama-3.1-8b", "gpu": "H100", "prompt": 1024, "output": 256})"},
    {"compare_gpus", R"({"model": "gpt2", "gpus": ["H100", "L4"], "batch": 8})"},
    {"memory_timeline", R"({"model": "gpt2", "gpu": "L4", "mode": "training"})"},
    {"power_timeline", R"({"model": "gpt2", "gpu": "L4", "mode": "training"})"},
    {"compare", R"({"a": "H100", "b": "T4", "model": "gpt2"})"},
    {"kernel", R"({"op": "linear", "gpu": "A100", "m": 128, "n": 256, "k": 512})"},
    {"collective",
     R"({"kind": "all_reduce", "cluster": "dgx-h100", "ranks": 8, "bytes": 1048576})"},
    {"plan", R"({"model": "gpt2", "gpu": "H100", "num_gpus": 2, "batch": 8})"},
    {"shard", R"({"tables": "dlrm_mlperf", "cluster": "dgx-a100"})"},
    {"share", R"({"gpu": "V100", "how": "mps", "job": [{"model": "gpt2", "batch": 2},
                 {"model": "bert", "mode": "training"}]})"}};

OrderedJson job_schema() {
  const OrderedJson text = {{"type", "string"}}, number = {{"type", "number"}},
                    whole = {{"type", "integer"}};
  return {
      {"type", "object"},
      {"description", "A request that is answered later."},
      {"properties",
       {{"id", text},
        {"question", text},
        {"state",
         {{"type", "string"},
          {"enum", OrderedJson::array({"waiting", "running", "done", "failed", "cancelled"})}}},
        {"created", {{"type", "string"}, {"format", "date-time"}}},
        {"finished", {{"type", "string"}, {"format", "date-time"}}},
        {"seconds", number},
        {"progress",
         {{"type", "object"}, {"properties", {{"done", whole}, {"total", whole}, {"unit", text}}}}},
        {"status", {{"type", "integer"}, {"description", "of the answer, once finished"}}},
        {"result", {{"type", "string"}, {"description", "where the answer is"}}}}},
      {"required", OrderedJson::array({"id", "question", "state", "created"})}};
}

/// Options beside models and GPUs that take content, as an object, in place of a name: sides of a
/// comparison, jobs.
constexpr std::string_view kWithContent[] = {"a", "b", "job", "jobs"};

OrderedJson value_schema(const CommandOption& option) {
  OrderedJson one = {{"type", json_type(option)}};
  if (!option.choices.empty()) one["enum"] = option.choices;
  if (option.kind == ValueKind::kModel || option.kind == ValueKind::kGpu ||
      std::find(std::begin(kWithContent), std::end(kWithContent), option.keyword()) !=
          std::end(kWithContent))
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

OrderedJson content(std::initializer_list<const char*> types, const OrderedJson& schema) {
  OrderedJson all = OrderedJson::object();
  for (const char* type : types) all[type]["schema"] = schema;
  return all;
}

OrderedJson reference(const char* name) {
  return {{"$ref", std::string("#/components/schemas/") + name}};
}

OrderedJson responses(const OrderedJson& schema,
                      std::initializer_list<const char*> types = {"application/json"}) {
  return {{"200", {{"description", "the answer"}, {"content", content(types, schema)}}},
          {"default",
           {{"description", "a problem"},
            {"content", content({"application/problem+json"}, reference("Problem"))}}}};
}

/// A request that may be a job: who asks for it gets its place at once.
void add_job(OrderedJson& operation) {
  operation["parameters"].push_back(
      text_parameter("Prefer", "header", "respond-async: a job, whose place is in Location"));
  operation["responses"]["202"] = {{"description", "a job"},
                                   {"content", content({"application/json"}, reference("Job"))}};
}

OrderedJson table_path() {
  const char *const lines = "application/x-ndjson", *const csv = "text/csv";
  OrderedJson operation = {
      {"operationId", "forecast_many"},
      {"summary",
       "A forecast for each row, in order: lines of JSON, or CSV with the options as columns"},
      {"parameters", OrderedJson::array({text_parameter(
                         "fields", "query", "fields of each row, with commas between them")})},
      {"requestBody",
       {{"required", true}, {"content", content({lines, csv}, {{"type", "string"}})}}},
      {"responses", responses({{"type", "string"}}, {lines, csv})}};
  operation["requestBody"]["content"][lines]["example"] =
      "{\"model\": \"gpt2\", \"gpu\": \"H100\", \"batch\": 4}\n"
      "{\"model\": \"gpt2\", \"gpu\": \"L4\", \"batch\": 8}\n";
  operation["requestBody"]["content"][csv]["example"] = "model,gpu,batch\ngpt2,H100,4\ngpt2,L4,8\n";
  add_job(operation);
  return {{"post", operation}};
}

void add_job_paths(OrderedJson& paths) {
  const OrderedJson parameters = OrderedJson::array({text_parameter("id", "path", "of the job")});
  OrderedJson& job = paths["/v1/jobs/{id}"];
  job["get"] = {
      {"operationId", "job"},
      {"summary", "How far a job is; as text/event-stream, an event for each change"},
      {"parameters", parameters},
      {"responses", responses(reference("Job"), {"application/json", "text/event-stream"})}};
  job["delete"] = {{"operationId", "delete_job"},
                   {"summary", "Cancels a job and forgets it with its answer"},
                   {"parameters", parameters},
                   {"responses", responses(OrderedJson::object())}};
  job["delete"]["responses"].erase("200");
  job["delete"]["responses"]["204"] = {{"description", "it is forgotten"}};
  paths["/v1/jobs/{id}/result"]["get"] = {
      {"operationId", "job_result"},
      {"summary", "The answer of a job that is finished, as its request would have got it"},
      {"parameters", parameters},
      {"responses", responses(OrderedJson::object())}};
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
  OrderedJson all = schemas();
  all["Job"] = job_schema();
  OrderedJson paths = OrderedJson::object();
  for (const Question& question : questions()) {
    if (question.is_local || question.name == "data_file") continue;
    const bool is_list = question.index().options().size() <= 3;  // a name, and the limits
    const std::string path = fmt::format("/v1/{}", question.name);
    if (is_list && question.name != "ops") {
      paths[path + "/{id}"]["get"] = {
          {"operationId", fmt::format("one_of_{}", question.name)},
          {"summary",
           "One of them as the file that it is made of, with the sources of its numbers"},
          {"parameters", OrderedJson::array({text_parameter("id", "path", "its name")})},
          {"responses", responses(OrderedJson::object())}};
    }
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
    for (const auto& [name, example] : kExamples) {
      if (name == question.name)
        operation["requestBody"]["content"]["application/json"]["example"] =
            OrderedJson::parse(example);
    }
    operation["responses"] = responses(answer_schema(question, all));
    add_job(operation);
  }
  paths["/v1/forecast_many"] = table_path();
  add_job_paths(paths);
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
