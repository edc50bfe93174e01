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

OrderedJson tool_of(const Question& question) {
  OrderedJson schema = request_schema(question);
  schema["properties"]["fields"] = {
      {"type", "array"},
      {"items", {{"type", "string"}}},
      {"description", "fields of the JSON answer that are wanted; without, a table as text"}};
  return {{"name", question.name}, {"description", question.help}, {"inputSchema", schema}};
}

OrderedJson text_content(const std::string& text, bool is_error) {
  return {{"content", OrderedJson::array({{{"type", "text"}, {"text", text}}})},
          {"isError", is_error}};
}

OrderedJson call(const Api& api, const Json& params) {
  if (!params.is_object() || !params.contains("name") || !params["name"].is_string())
    throw RpcError{kBadParams, "expected params with the name of a tool"};
  const auto name = params["name"].get<std::string>();
  if (find_served(name) == nullptr)
    throw RpcError{kBadParams, fmt::format("no tool is called '{}'", shown_name(name))};
  Json arguments = params.value("arguments", Json::object());
  if (!arguments.is_object()) throw RpcError{kBadParams, "expected arguments as an object"};
  std::string query = "format=table";
  if (arguments.contains("fields")) {
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
  if (response.status == 200) return text_content(response.body, false);
  return text_content(Json::parse(response.body)["detail"].get<std::string>(), true);
}

OrderedJson result_of(const Api& api, const std::string& method, const Json& params) {
  if (method == "initialize")
    return {{"protocolVersion", kProtocol},
            {"capabilities", {{"tools", OrderedJson::object()}}},
            {"serverInfo", {{"name", "tilecast"}, {"version", "1"}}},
            {"instructions",
             "Forecasts time, memory and cost of deep-learning models on GPUs that need not be at "
             "hand. Models and GPUs are names (tools models and gpus) or their content."}};
  if (method == "ping") return OrderedJson::object();
  if (method == "tools/list") {
    OrderedJson tools = OrderedJson::array();
    for (const Question& question : questions()) {
      if (find_served(question.name) != nullptr) tools.push_back(tool_of(question));
    }
    return {{"tools", tools}};
  }
  if (method == "tools/call") return call(api, params);
  throw RpcError{kNoMethod, fmt::format("no method is called '{}'", shown_name(method))};
}

std::string text_of(const OrderedJson& message) {
  return message.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string error_text(const Json& id, const RpcError& error) {
  return text_of({{"jsonrpc", "2.0"},
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
    return text_of({{"jsonrpc", "2.0"},
                    {"id", id},
                    {"result", result_of(api, request["method"].get<std::string>(),
                                         request.value("params", Json::object()))}});
  } catch (const RpcError& error) {
    return error_text(id, error);
  }
}

}  // namespace tilecast::server
