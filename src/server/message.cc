#include "server/message.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace tilecast::server {
namespace {

std::string_view title_of(int status) {
  switch (status) {
    case 400:
      return "The request does not make sense";
    case 401:
      return "A token is needed";
    case 403:
      return "Refused";
    case 404:
      return "Not found";
    case 405:
      return "Another method is needed";
    case 409:
      return "Not finished";
    case 413:
      return "The request is too large";
    case 415:
      return "Another type of content is needed";
    case 422:
      return "This cannot be forecast";
    case 503:
      return "Too much work in progress";
    default:
      return "A defect of the service";
  }
}

}  // namespace

HttpResponse problem(int status, const std::string& detail) {
  const Json body = {
      {"type", "about:blank"}, {"title", title_of(status)}, {"status", status}, {"detail", detail}};
  return {.status = status,
          .content_type = "application/problem+json",
          .body = body.dump(1, ' ', false, Json::error_handler_t::replace) + "\n",
          .headers = {},
          .parts = nullptr};
}

std::string media_type(const std::string& field) {
  return lower_case(std::string(trim(std::string_view(field).substr(0, field.find(';')))));
}

bool lists(const std::string& field, std::string_view word) {
  const std::vector<std::string> parts = split(field, ',');
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return media_type(part) == word; });
}

}  // namespace tilecast::server
