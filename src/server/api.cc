#include "server/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/budget.h"
#include "base/json.h"
#include "base/text.h"
#include "command/question.h"
#include "command/views.h"
#include "report/html.h"
#include "scenario/internal.h"
#include "server/body.h"
#include "server/calls.h"
#include "server/openapi.h"
#include "server/option_list.h"
#include "server/static_files.h"
#include "server/table.h"
#include "tilecast/error.h"

namespace tilecast::server {
namespace {

constexpr std::string_view kPrefix = "/v1/", kTable = "forecast_many";

/// Of passes that are remembered: 200 MB, the passes of some thousand different requests.
constexpr size_t kKeptNodes = 100'000;

/// Path and query of a target, with %XX and + decoded; nullopt: they are no text.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = digit(text[i + 1]), low = digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(16 * high + low);
    i += 2;
  }
  return out;
}

std::string_view query_of(std::string_view target) {
  const size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view{} : target.substr(mark + 1);
}

/// The value of a name in a query, "a=1&b=2"; "": it is not there.
std::string query_value(std::string_view query, std::string_view name) {
  for (const std::string& part : split(query, '&')) {
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=')
      return decoded(std::string_view(part).substr(name.size() + 1)).value_or("");
  }
  return "";
}

int status_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kInput:
      return 400;
    case ErrorKind::kNotFound:
      return 404;
    case ErrorKind::kUnsupported:
      return 422;
    case ErrorKind::kIo:
    case ErrorKind::kInternal:
      return 500;
  }
  return 500;
}

/// What would make a model fit is searched for only where it is shown.
bool shows_memory(const std::string& fields) {
  return fields.empty() || fields.find("memory") != std::string::npos;
}

/// In a time that does not tell how much of it is right.
bool is_same(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(
        difference | (static_cast<unsigned char>(a[i]) ^
                      static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()])));
  return difference == 0;
}

/// The name in a Host header, without the port.
std::string host_name(const std::string& host) {
  const size_t colon = host.rfind(':');
  const bool is_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  return lower_case(is_port ? host.substr(0, colon) : host);
}

/// Counts the time of an answer while it lives.
class InProgress {
 public:
  explicit InProgress(Metrics& metrics) : metrics_(metrics) { ++metrics_.in_progress; }
  ~InProgress() {
    --metrics_.in_progress;
    metrics_.microseconds += std::chrono::duration_cast<std::chrono::microseconds>(
                                 std::chrono::steady_clock::now() - start_)
                                 .count();
  }
  InProgress(const InProgress&) = delete;
  InProgress& operator=(const InProgress&) = delete;

 private:
  Metrics& metrics_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A body that is made of a target, which may hold any bytes.
std::string body_text(const Json& body) {
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_catalog(std::string_view name) {
  return name == "gpus" || name == "clusters" || name == "models" || name == "ops";
}

/// A report runs its own script, and has its own style.
HttpResponse with_policy(HttpResponse response) {
  if (response.content_type.starts_with("text/html"))
    response.headers.emplace_back("Content-Security-Policy",
                                  report_policy() + "; frame-ancestors 'none'");
  return response;
}

}  // namespace

Api::Api(ApiOptions options, std::shared_ptr<const Forecaster> forecaster)
    : options_(std::move(options)), forecaster_(std::move(forecaster)) {
  forecaster_->impl().passes.keep_nodes(kKeptNodes);
  if (!options_.jobs) return;
  jobs_ = std::make_unique<Jobs>(
      *options_.jobs,
      [this](const HttpRequest& request, const ShowProgress& show,
             const std::atomic<bool>& cancelled) { return run_job(request, show, cancelled); });
}

void Api::end() const {
  if (jobs_) jobs_->end();
}

Limits ApiOptions::limits() const {
  return {.memory_bytes = request_bytes,
          .seconds = request_seconds,
          .files = !folder.empty(),
          .folder = folder};
}

bool Api::is_quick(const HttpRequest& request) {
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (is_read) return true;
  const std::string_view target = request.target;
  // Jobs are begun, and forgotten, at once.
  if (lists(request.prefer, "respond-async") || target.starts_with("/v1/jobs/")) return true;
  const std::string fields = query_value(query_of(target), "fields");
  const auto asks = [&](std::string_view name) {
    return target.starts_with(kPrefix) && target.substr(kPrefix.size()).starts_with(name);
  };
  const bool is_short = asks("kernel?") || asks("collective?") ||
                        (asks("forecast?") && !fields.empty() && !shows_memory(fields));
  // Content of a model, several ranks and servers under load take longer. A backslash could hide
  // their names.
  constexpr size_t kShort = 2000;
  const auto has = [&](std::string_view word) {
    return request.body.find(word) != std::string::npos;
  };
  return is_short && request.body.size() < kShort && !has("\\") && !has("\"rate\"") &&
         !has("\"concurrency\"") && !has("\"trace\"") && !has("\"cluster\"") &&
         request.body.find('{', 1) == std::string::npos;
}

HttpResponse Api::ask(std::string_view name, std::string_view query, const std::string& body,
                      const Work& work) const {
  const Question* question = find_served(name);
  if (question == nullptr)
    return problem(404, fmt::format("no question is called '{}'; /v1/openapi.json lists them",
                                    shown_name(name)));
  const LimitScope limits(work.limits);
  const std::string where = "the body";
  const Json json = parse_json(body.empty() ? "{}" : body, where);
  const JsonObject object(json, where);
  for (const std::string_view key : kOptionsOfTheService) {
    if (object.has(std::string(key)))
      object.fail(std::string(key), "is set by the service: leave it out");
  }
  const std::string fields = query_value(query, "fields"), format = query_value(query, "format");
  if (format == "calls") return {.body = calls_json(*question, object)};
  if (!fields.empty() && !format.empty())
    return problem(400, "give `fields` or `format`: fields are those of JSON");
  const Reply reply =
      question->ask(given_of(*question, object),
                    {.forecaster = forecaster_,
                     .show_progress = work.show_progress,
                     .detail = shows_memory(fields) ? Detail::kRemedies : Detail::kNumbers});
  if (!fields.empty())
    return {
        .body = selected_json(reply.answer, split(fields, ',')), .headers = {}, .parts = nullptr};
  const std::string wanted = format.empty() ? "json" : format;
  std::optional<std::string> text = view(reply.answer, wanted);
  if (!text) return problem(400, fmt::format("this answer has no format '{}'", shown_name(wanted)));
  return {.content_type = wanted == "json"   ? "application/json"
                          : wanted == "csv"  ? "text/csv; charset=utf-8"
                          : wanted == "svg"  ? "image/svg+xml"
                          : wanted == "html" ? "text/html; charset=utf-8"
                                             : "text/plain; charset=utf-8",
          .body = *std::move(text)};
}

std::optional<HttpResponse> Api::refusal(const HttpRequest& request) const {
  if (request.target == "/healthz") return std::nullopt;
  const std::string host = host_name(request.host);
  const auto& hosts = options_.hosts;
  if (std::find(hosts.begin(), hosts.end(), host) == hosts.end())
    return problem(403, fmt::format("the service is not called '{}'; --allow-host adds a name",
                                    shown_name(host)));
  if (!request.origin.empty() && request.origin != "http://" + request.host &&
      request.origin != "https://" + request.host)
    return problem(403, "requests from pages of other sites are refused");
  // The page asks for the token itself, and has nothing to hide.
  const bool is_page =
      is_of_page(std::string_view(request.target).substr(0, request.target.find('?')));
  if (!options_.token.empty() && !is_page &&
      !is_same(request.authorization, "Bearer " + options_.token))
    return problem(401, "expected the header 'Authorization: Bearer TOKEN'");
  return std::nullopt;
}

HttpResponse Api::metrics_text() const {
  const Metrics& m = metrics_;
  const PassCache::Counts cache = forecaster_->impl().passes.counts();
  const Jobs::Counts jobs = jobs_ ? jobs_->counts() : Jobs::Counts{};
  std::string text;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       const auto&... values) {
    text += fmt::format("# HELP tilecast_{0} {2}\n# TYPE tilecast_{0} {1}\n", name, type, help);
    (..., (text += fmt::format("tilecast_{}{}\n", name, values)));
  };
  const auto one = [](auto value) { return fmt::format(" {}", value); };
  const auto in_state = [](const char* state, int64_t value) {
    return fmt::format("{{state=\"{}\"}} {}", state, value);
  };
  add("requests_total", "counter", "Requests that were answered.", one(m.requests.load()));
  add("errors_total", "counter", "Answers with a status of 400 or more.", one(m.errors.load()));
  add("refused_total", "counter", "Requests refused for too much work in progress.",
      one(m.refused.load()));
  add("request_seconds_total", "counter", "Time spent on answers.",
      fmt::format(" {:.6f}", static_cast<double>(m.microseconds.load()) / 1e6));
  add("in_progress", "gauge", "Answers that are being made.", one(m.in_progress.load()));
  add("connections", "gauge", "Connections that are open.", one(m.connections.load()));
  add("pass_cache_hits_total", "counter", "Graphs of passes that were remembered.",
      one(cache.found));
  add("pass_cache_misses_total", "counter", "Graphs of passes that were built.", one(cache.built));
  add("pass_cache_passes", "gauge", "Graphs of passes that are remembered now.", one(cache.passes));
  add("jobs", "gauge", "Jobs by state.", in_state("waiting", jobs.waiting),
      in_state("running", jobs.running), in_state("finished", jobs.finished));
  add("job_bytes", "gauge", "Requests and results of jobs.", one(jobs.bytes));
  return {.content_type = "text/plain; version=0.0.4",
          .body = std::move(text),
          .headers = {},
          .parts = nullptr};
}

HttpResponse Api::read(const std::string& name, const std::string& path,
                       std::string_view query) const {
  if (path == "options") return {.body = option_list()};
  if (name == "options") {
    const std::string asked = path.substr(name.size() + 1);
    const Question* question = find_served(asked);
    return question == nullptr
               ? problem(404, fmt::format("no question is called '{}'", shown_name(asked)))
               : HttpResponse{.body = grouped_options(*question)};
  }
  if (path.size() > name.size() + 1 && name != "ops")
    return ask("data_file", "", body_text({{"kind", name}, {"name", path.substr(name.size() + 1)}}),
               Work{.limits = options_.limits(), .show_progress = {}});
  Json body = Json::object();
  const std::string wanted =
      path.size() > name.size() + 1 ? path.substr(name.size() + 1) : query_value(query, "name");
  if (!wanted.empty()) body["name"] = wanted;
  return ask(name, query, body_text(body), Work{.limits = options_.limits(), .show_progress = {}});
}

HttpResponse Api::route(const HttpRequest& request) const {
  const std::string_view target = request.target;
  const size_t mark = target.find('?');
  const std::optional<std::string> path = decoded(target.substr(0, mark));
  const std::string_view query = query_of(target);
  if (!path) return problem(400, "the path is not encoded well");
  if (*path == "/healthz") return {.content_type = "text/plain", .body = "ok\n"};

  if (std::optional<HttpResponse> refused = refusal(request)) return *std::move(refused);
  if (*path == "/metrics") return metrics_text();
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (get && is_of_page(*path)) {
    if (std::optional<HttpResponse> file = page_file(*path, request.if_none_match))
      return *std::move(file);
  }
  if (!path->starts_with(kPrefix))
    return problem(404, "there is nothing here; /v1/openapi.json describes the service");
  const std::string rest = path->substr(kPrefix.size());
  const std::string name = rest.substr(0, rest.find('/'));
  if (get && rest == "openapi.json") return {.body = openapi()};
  if (get && (name == "options" || is_catalog(name))) return read(name, rest, query);
  if (jobs_ && name == "jobs" && rest.size() > name.size())
    return with_policy(jobs_->answer(request, rest.substr(name.size() + 1)));
  if (rest != kTable && find_served(rest) == nullptr)
    return problem(404, fmt::format("no question is called '{}'; /v1/openapi.json lists them",
                                    shown_name(rest)));
  if (request.method != "POST") {
    HttpResponse response = problem(405, "expected POST with the options as JSON");
    response.headers.emplace_back("Allow", "POST");
    return response;
  }
  if (jobs_ && lists(request.prefer, "respond-async")) return jobs_->add(request);
  return with_policy(post(rest, request, Work{.limits = options_.limits(), .show_progress = {}}));
}

HttpResponse Api::post(const std::string& name, const HttpRequest& request,
                       const Work& work) const {
  const std::string_view query = query_of(request.target);
  if (name != kTable) return ask(name, query, request.body, work);
  const std::string fields = query_value(query, "fields");
  return table_answer(forecaster_, request,
                      fields.empty() ? std::vector<std::string>{} : split(fields, ','),
                      {.limits = work.limits, .show_progress = work.show_progress});
}

std::optional<HttpResponse> Api::run_job(const HttpRequest& request, const ShowProgress& show,
                                         const std::atomic<bool>& cancelled) const {
  Work work{.limits = options_.limits(), .show_progress = show};
  work.limits.seconds = options_.job_seconds;
  work.limits.cancelled = &cancelled;
  const std::string path =
      decoded(std::string_view(request.target).substr(0, request.target.find('?'))).value_or("");
  if (!path.starts_with(kPrefix)) return problem(404, "there is no such question");
  HttpResponse response =
      guarded(work.limits, [&] { return post(path.substr(kPrefix.size()), request, work); });
  if (cancelled && response.status == 422) return std::nullopt;
  return response;
}

template <typename Answer>
HttpResponse Api::guarded(const Limits& limits, const Answer& answer) {
  const auto with_limits = [&](const char* what) {
    return problem(422, fmt::format("{} (limits of the service: {} and {:.0f} s)", what,
                                    format_bytes(limits.memory_bytes.value_or(0)),
                                    limits.seconds.value_or(0)));
  };
  try {
    return answer();
  } catch (const Error& error) {
    return problem(status_of(error), error.what());
  } catch (const LimitReached& reached) {
    return with_limits(reached.what());
  } catch (const AllocationRefused& refused) {
    return with_limits(refused.what());
  } catch (const std::bad_alloc&) {
    return problem(503, "out of memory");
  } catch (const std::exception& error) {
    return problem(500, std::string("this is a bug: ") + error.what());
  }
}

HttpResponse Api::answer(const HttpRequest& request) const {
  HttpResponse response;
  {
    const InProgress counted(metrics_);
    response = guarded(options_.limits(), [&] { return route(request); });
  }
  ++metrics_.requests;
  if (response.status >= 400) ++metrics_.errors;
  if (response.parts && response.parts->is_long) {
    response.parts->next = [this, next = std::move(response.parts->next)] {
      const InProgress counted(metrics_);
      return next();
    };
  }
  return response;
}

}  // namespace tilecast::server
