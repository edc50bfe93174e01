#pragma once

// The service as a function: a request in, a response out. It knows nothing of sockets, and has no
// rules of its own: what can be asked is the table of questions (src/command).

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilecast/forecast.h"

namespace tilecast::server {

struct HttpRequest {
  std::string method, target, host, origin, authorization, if_none_match, body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct ApiOptions {
  /// Names in the Host header, without the port, that the service is called by. Others are
  /// refused: a page of another site could reach it by a name that resolves to this machine.
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "[::1]"};
  std::string token;                           ///< "": none is asked for
  int64_t request_bytes = int64_t{512} << 20;  ///< memory that one answer may take
  double request_seconds = 60;                 ///< time that one answer may take
};

/// Counters, for /metrics.
struct Metrics {
  std::atomic<int64_t> requests{0}, errors{0}, microseconds{0}, refused{0};
};

class Api {
 public:
  Api(ApiOptions options, std::shared_ptr<const Forecaster> forecaster);

  /// Answers any request; never throws but for lack of memory. Safe from any number of threads.
  HttpResponse answer(const HttpRequest& request) const;

  /// Why a request is refused before its body is read: its host, origin or token; nullopt: it is
  /// not.
  std::optional<HttpResponse> refusal(const HttpRequest& request) const;

  /// Whether the answer surely takes a few milliseconds at most, so that it may be made where
  /// connections are served: chosen fields of a bundled model on one GPU, and catalogues.
  static bool is_quick(const HttpRequest& request);

  Metrics& metrics() const { return metrics_; }

 private:
  HttpResponse route(const HttpRequest& request) const;
  HttpResponse ask(std::string_view name, std::string_view query, const std::string& body) const;
  HttpResponse metrics_text() const;
  /// Options of all questions, or a catalogue; `path` is what follows /v1/.
  HttpResponse read(const std::string& name, const std::string& path, std::string_view query) const;

  ApiOptions options_;
  std::shared_ptr<const Forecaster> forecaster_;
  mutable Metrics metrics_;
};

/// A problem by RFC 9457.
HttpResponse problem(int status, const std::string& detail);

}  // namespace tilecast::server
