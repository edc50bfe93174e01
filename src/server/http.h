#pragma once

// Connections: HTTP/1.1 over TCP for an Api.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/api.h"

namespace tilecast::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  ///< 0: any that is free
  int threads = 0;       ///< that serve connections; 0: one a core
  int workers = 0;       ///< that make long answers, at a low priority; 0: one a core
  size_t most_body_bytes = 8 << 20;
  size_t most_connections = 12'000;  ///< fewer where the process may open fewer files
  size_t most_waiting = 64;          ///< long answers that wait for a worker
  int idle_seconds = 30;             ///< for a whole request to arrive, and for its answer to leave
};

/// Whether only this machine reaches the address. Throws Error{kInput} for a text that is none.
bool is_loopback(const std::string& address);

/// Serves until `stop`, SIGINT or SIGTERM; answers that are being made are finished then, those
/// that wait are not made. A second signal ends the process.
class HttpServer {
 public:
  /// Listens. Throws Error{kIo} where it cannot.
  HttpServer(const Api& api, const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilecast::server
