#pragma once

// From the bytes of HTTP to a request, for connections and for the fuzz target.

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <string>

#include "server/message.h"

namespace tilecast::server {

using RequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

inline constexpr uint32_t kMostHeaderBytes = 16 << 10;
/// Of a table (forecast_many), whose body may be the largest.
inline constexpr uint64_t kMostTableBytes = 64 << 20;

inline void set_limits(RequestParser& parser) {
  parser.header_limit(kMostHeaderBytes);
  parser.body_limit(kMostTableBytes);
}

/// Whether the body has another coding than chunks: where it ends cannot be told then, and what
/// follows could be taken for another request (RFC 9112, 6.3).
inline bool has_unknown_coding(const RequestParser::value_type& message) {
  const auto coding = message[boost::beast::http::field::transfer_encoding];
  return !coding.empty() && !boost::beast::iequals(coding, "chunked");
}

/// What the header says; the body is empty.
inline HttpRequest request_of(const RequestParser::value_type& message) {
  using boost::beast::http::field;
  const auto text = [](boost::beast::string_view view) {
    return std::string(view.data(), view.size());
  };
  return {.method = text(message.method_string()),
          .target = text(message.target()),
          .host = text(message[field::host]),
          .origin = text(message[field::origin]),
          .authorization = text(message[field::authorization]),
          .body = {},
          .content_type = text(message[field::content_type]),
          .accept = text(message[field::accept]),
          .prefer = text(message["Prefer"]),
          .if_none_match = text(message[field::if_none_match])};
}

}  // namespace tilecast::server
