#include "server/mcp.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "command/question.h"
#include "server/openapi.h"
#include "tilecast/error.h"

namespace tilecast::server {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The newest version of the protocol whose messages these are.
constexpr std::string_view kProtocol = "2025-06-18";

// Codes of JSON-RPC 2.0.
constexpr int kNotJson = -32700, kNoRequest = -32600, kNoMethod = -32601, kBadParams = -32602;

struct RpcError {
  int code;
  std::string message;
};

/// Options of a question that its tool states; the tool `options` has the others. A list of tools
/// is read by each talk: it stays small.
constexpr size_t kStatedOptions = 7;
/// Those that come first, where a question has them.
constexpr std::string_view kUsualOptions[] = {"model", "gpu", "gpus",   "cluster", "nodes", "mode",
                                              "batch", "seq", "prompt", "output",  "rate"};
constexpr std::string_view kOptionsTool = "options";

/// The first clause of a help text.
std::string short_help(const std::string& help) {
  constexpr size_t kShort = 70;
  const size_t end = std::min(help.find(';'), help.size());
  if (end <= kShort) return help.substr(0, end);
  const size_t space = help.rfind(' ', kShort);
  return help.substr(0, space == std::string::npos ? kShort : space) + " …";
}

OrderedJson tool_of(const Question& question) {
  OrderedJson schema = request_schema(question);
  OrderedJson stated = OrderedJson::object();
  const size_t all = schema["properties"].size();
  const OrderedJson required = schema.value("required", OrderedJson::array());
  const auto state = [&](bool first) {
    for (const auto& [name, property] : schema["properties"].items()) {
      const bool is_first = std::find(required.begin(), required.end(), name) != required.end() ||
                            std::find(std::begin(kUsualOptions), std::end(kUsualOptions), name) !=
                                std::end(kUsualOptions);
      if (first != is_first || (!first && stated.size() >= kStatedOptions)) continue;
      stated[name] = property;
      stated[name]["description"] = short_help(property["description"].get<std::string>());
    }
  };
  state(true);
  state(false);
  std::string help(question.help);
  if (stated.size() < all)
    help += fmt::format(". {} more options: ask the tool '{}'", all - stated.size(), kOptionsTool);
  stated["fields"] = {{"type", "array"},
                      {"items", {{"type", "string"}}},
                      {"description", "fields wanted as JSON; without, a table"}};
  schema["properties"] = std::move(stated);
  schema["additionalProperties"] = true;
  return {{"name", question.name}, {"description", help}, {"inputSchema", schema}};
}

/// The tool that states all options of another one.
OrderedJson options_tool() {
  const OrderedJson text = {{"type", "string"}};
  return {{"name", kOptionsTool},
          {"description", "All options of a tool, or those whose name or help has a word"},
          {"inputSchema",
           {{"type", "object"},
            {"properties", {{"tool", text}, {"word", text}}},
            {"required", OrderedJson::array({"tool"})}}}};
}

/// A line for each option: its name, type, default and help.
std::string options_text(const Question& question, const std::string& word) {
  std::string text;
  for (const CommandOption& option : question.index().options()) {
    if (!is_of_requests(option.keyword())) continue;
    std::string line = option.keyword();
    line += fmt::format(" ({}{}", option.choices.empty() ? json_type(option) : "",
                        join(option.choices, "|"));
    if (option.required) line += ", required";
    if (option.list || option.repeated) line += ", or a list";
    if (!option.default_value.empty()) line += ", default " + option.default_value;
    line += "): " + option.help;
    if (lower_case(line).find(lower_case(word)) != std::string::npos) text += line + "\n";
  }
  return text.empty() ? "no option has that word\n" : text;
}

OrderedJson text_content(const std::string& text, bool is_error) {
  return {{"content", OrderedJson::array({{{"type", "text"}, {"text", text}}})},
          {"isError", is_error}};
}

OrderedJson call_options(const Json& arguments) {
  const auto text = [&](const char* key) {
    return arguments.is_object() && arguments.contains(key) && arguments[key].is_string()
               ? arguments[key].get<std::string>()
               : "";
  };
  const Question* question = find_served(text("tool"));
  if (question == nullptr)
    return text_content(fmt::format("no tool is called '{}'", shown_name(text("tool"))), true);
  return text_content(options_text(*question, text("word")), false);
}

OrderedJson call(const Api& api, const Json& params) {
  if (!params.is_object() || !params.contains("name") || !params["name"].is_string())
    throw RpcError{kBadParams, "expected params with the name of a tool"};
  const auto name = params["name"].get<std::string>();
  if (name == kOptionsTool) return call_options(params.value("arguments", Json::object()));
  if (find_served(name) == nullptr)
    throw RpcError{kBadParams, fmt::format("no tool is called '{}'", shown_name(name))};
  Json arguments = params.value("arguments", Json::object());
  if (!arguments.is_object()) throw RpcError{kBadParams, "expected arguments as an object"};
  std::string query = "format=table";
  const bool has_fields = arguments.contains("fields");
  if (has_fields) {
    std::vector<std::string> fields;
    for (const Json& field : arguments["fields"]) {
      const std::string name = field.is_string() ? field.get<std::string>() : field.dump();
      const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
        return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z');
      });
      if (!is_name || name.empty())
        throw RpcError{kBadParams, fmt::format("'{}' is no field", shown_name(name))};
      fields.push_back(name);
    }
    query = "fields=" + join(fields, ",");
    arguments.erase("fields");
  }
  const HttpResponse response = api.answer({.method = "POST",
                                            .target = fmt::format("/v1/{}?{}", name, query),
                                            .host = "localhost",
                                            .body = arguments.dump()});
  if (response.status == 200)
    return text_content(has_fields ? Json::parse(response.body).dump() : response.body, false);
  return text_content(Json::parse(response.body)["detail"].get<std::string>(), true);
}

OrderedJson result_of(const Api& api, const std::string& method, const Json& params) {
  if (method == "initialize")
    return {{"protocolVersion", kProtocol},
            {"capabilities", {{"tools", OrderedJson::object()}}},
            {"serverInfo", {{"name", "tilecast"}, {"version", "1"}}},
            {"instructions",
             "Forecasts time, memory and cost of deep-learning models on GPUs that need not be at "
             "hand. Models and GPUs are names (tools models and gpus) or their content. Tools "
             "state their usual options; the tool options has all of them."}};
  if (method == "ping") return OrderedJson::object();
  if (method == "tools/list") {
    OrderedJson tools = OrderedJson::array({options_tool()});
    for (const Question& question : questions()) {
      if (find_served(question.name) != nullptr) tools.push_back(tool_of(question));
    }
    return {{"tools", tools}};
  }
  if (method == "tools/call") return call(api, params);
  throw RpcError{kNoMethod, fmt::format("no method is called '{}'", shown_name(method))};
}

std::string message_text(const OrderedJson& message) {
  return message.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string error_text(const Json& id, const RpcError& error) {
  return message_text({{"jsonrpc", "2.0"},
                       {"id", id},
                       {"error", {{"code", error.code}, {"message", error.message}}}});
}

}  // namespace

std::string mcp_answer(const Api& api, std::string_view message) {
  Json request;
  try {
    request = parse_json(message, "the message");
  } catch (const Error& error) {
    return error_text(nullptr, {kNotJson, error.what()});
  }
  if (!request.is_object() || !request.contains("method") || !request["method"].is_string())
    return error_text(nullptr, {kNoRequest, "expected an object with a method"});
  if (!request.contains("id")) return "";  // a notification
  const Json id = request["id"];
  try {
    return message_text({{"jsonrpc", "2.0"},
                         {"id", id},
                         {"result", result_of(api, request["method"].get<std::string>(),
                                              request.value("params", Json::object()))}});
  } catch (const RpcError& error) {
    return error_text(id, error);
  }
}

}  // namespace tilecast::server
