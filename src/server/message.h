#pragma once

// A request and its response, without sockets.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tilecast::server {

struct HttpRequest {
  std::string method, target, host, origin, authorization, body;
  std::string content_type, accept, prefer, if_none_match;
};

/// A body that is made part by part. One thread at a time asks for the next part.
struct BodyParts {
  std::function<std::optional<std::string>()> next;  ///< nullopt: the end; "": nothing yet
  bool is_long = false;                              ///< a part may take long to make
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<BodyParts> parts;  ///< in place of `body`; null: there are none
};

/// A problem by RFC 9457.
HttpResponse problem(int status, const std::string& detail);

/// The media type of a header field, without its parameters, in lower case.
std::string media_type(const std::string& field);

/// Whether a list of media types (Accept) or of preferences (Prefer) has this one.
bool lists(const std::string& field, std::string_view word);

}  // namespace tilecast::server
