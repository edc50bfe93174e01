#pragma once

// A service without sockets, for the fuzz targets of HTTP and of bodies.

#include <cctype>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "server/api.h"

namespace tilecast {

/// The service that all inputs of a process ask. Its answers take a second at most: the fuzzer
/// looks for what goes wrong, not for what takes long.
inline const server::Api& fuzzed_api() {
  static const server::Api api({.token = "",
                                .request_bytes = int64_t{512} << 20,
                                .request_seconds = 1,
                                .folder = "",
                                .jobs = std::nullopt},
                               std::make_shared<const Forecaster>());
  return api;
}

/// An answer is well formed, and no request shows a bug.
inline void check_answer(const server::HttpResponse& response) {
  std::string body = response.body;
  if (response.parts) {
    while (const std::optional<std::string> part = response.parts->next()) body += *part;
  }
  if (response.status == 500) std::abort();
  if (response.content_type == "application/problem+json") {
    const std::string detail = nlohmann::json::parse(body)["detail"];
    // Messages hold nothing that acts on a terminal.
    if (printable_lines(detail) != detail) std::abort();
  } else if (response.content_type == "application/json") {
    if (!nlohmann::json::accept(body)) std::abort();
  } else if (response.content_type == "application/x-ndjson") {
    for (const std::string& line : split(body, '\n')) {
      if (!line.empty() && !nlohmann::json::accept(line)) std::abort();
    }
  }
}

}  // namespace tilecast
