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

#include "server/jobs.h"
#include "server/message.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"

namespace tilecast::server {

struct ApiOptions {
  /// Names in the Host header, without the port, that the service is called by. Others are
  /// refused: a page of another site could reach it by a name that resolves to this machine.
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "[::1]"};
  std::string token;                           ///< "": none is asked for
  int64_t request_bytes = int64_t{512} << 20;  ///< memory that one answer may take
  double request_seconds = 60;                 ///< time that one answer may take
  double job_seconds = 3600;                   ///< the same of a job
  std::string folder;                          ///< whose files may be asked for by path; "": none
  std::optional<JobsOptions> jobs;             ///< none: all requests are answered at once

  /// Of a request.
  Limits limits() const;
};

/// Counters, for /metrics.
struct Metrics {
  std::atomic<int64_t> requests{0}, errors{0}, microseconds{0}, refused{0};
  std::atomic<int64_t> in_progress{0}, connections{0};  ///< now
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

  /// Interrupts jobs; those that lie in a folder go on when the service begins again.
  void end() const;

 private:
  /// How a question is answered, beside its options.
  struct Work {
    Limits limits;
    ShowProgress show_progress;
  };
  /// The answer of a job; nullopt: it was cancelled.
  std::optional<HttpResponse> run_job(const HttpRequest& request, const ShowProgress& show,
                                      const std::atomic<bool>& cancelled) const;
  template <typename Answer>
  static HttpResponse guarded(const Limits& limits, const Answer& answer);
  HttpResponse route(const HttpRequest& request) const;
  /// A question or a table; `name` is what follows /v1/.
  HttpResponse post(const std::string& name, const HttpRequest& request, const Work& work) const;
  HttpResponse ask(std::string_view name, std::string_view query, const std::string& body,
                   const Work& work) const;
  HttpResponse metrics_text() const;
  /// Options of all questions, or a catalogue; `path` is what follows /v1/.
  HttpResponse read(const std::string& name, const std::string& path, std::string_view query) const;

  ApiOptions options_;
  std::shared_ptr<const Forecaster> forecaster_;
  mutable Metrics metrics_;
  std::unique_ptr<Jobs> jobs_;  ///< last: they ask the rest
};

}  // namespace tilecast::server
