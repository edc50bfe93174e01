// 'tilecast serve': forecasts over HTTP.

#include <fmt/format.h>

#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "command/shared_options.h"
#include "server/http.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

struct Serve {
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::vector<std::string> names;
  std::string folder, state;
  int64_t threads = 0, seconds = 60, megabytes = 512, waiting = 64, jobs = 1000, job_seconds = 3600,
          job_threads = 1;
  bool open = false;
  ForecasterSource forecaster;
};

std::vector<OptionGroup> serve_groups() {
  constexpr int64_t kMostThreads = 1024, kDay = 86'400, kMostMegabytes = 1 << 20;
  const Serve usual;
  std::vector<OptionGroup> groups = {
      {"Options",
       {{.names = "--host",
         .value = "ADDRESS",
         .default_value = usual.host,
         .help = "address to listen on; one that other machines reach asks each request for the "
                 "token in the variable TILECAST_TOKEN",
         .set = into<&Serve::host>()},
        whole_option("--port", std::to_string(usual.port), "0: any that is free",
                     into<&Serve::port>(), 0, 65'535),
        {.names = "--allow-host",
         .value = "NAME",
         .help = "a name in the Host header by which the service is called, beside localhost and "
                 "its address; may be given several times",
         .repeated = true,
         .set = into<&Serve::names>()},
        switch_option("no-token", "asks for no token on any address: something in front of it does",
                      into<&Serve::open>()),
        whole_option("--threads", "one a core", "that serve connections", into<&Serve::threads>(),
                     1, kMostThreads),
        whole_option("--request-seconds", std::to_string(usual.seconds),
                     "time that one answer may take", into<&Serve::seconds>(), 1, kDay),
        whole_option("--request-megabytes", std::to_string(usual.megabytes),
                     "memory that one answer may take, MiB", into<&Serve::megabytes>(), 16,
                     kMostMegabytes),
        whole_option("--waiting", std::to_string(usual.waiting),
                     "long answers that may be in progress or wait; more get 503",
                     into<&Serve::waiting>(), 1, 1'000'000),
        {.names = "--allow-dir",
         .value = "DIR",
         .help = "requests may name models, GPUs and other files below this folder by their paths; "
                 "without it, none",
         .kind = ValueKind::kFolder,
         .set = into<&Serve::folder>()}}},
      {"Jobs: requests with the header 'Prefer: respond-async'",
       {{.names = "--state",
         .value = "DIR",
         .help = "keeps jobs and their results in this folder, also when the service is ended or "
                 "killed; default: in memory",
         .kind = ValueKind::kFolder,
         .set = into<&Serve::state>()},
        whole_option("--job-seconds", std::to_string(usual.job_seconds),
                     "time that one job may take", into<&Serve::job_seconds>(), 1, 30 * kDay),
        whole_option("--job-threads", std::to_string(usual.job_threads), "jobs that run at a time",
                     into<&Serve::job_threads>(), 1, kMostThreads),
        whole_option("--jobs", std::to_string(usual.jobs),
                     "jobs that are kept; what finished first makes room for new ones",
                     into<&Serve::jobs>(), 1, 100'000)}}};
  const std::vector<CommandOption> last = forecaster_options<Serve>();
  groups.front().options.insert(groups.front().options.end(), last.begin(), last.end());
  return groups;
}

void run_serve(const Command& command, const Given& given) {
  Serve asked;
  OptionIndex(command.groups()).read(given, &asked);
  const char* token = std::getenv("TILECAST_TOKEN");
  server::ApiOptions api_options{
      .token = token != nullptr && !asked.open ? token : "",
      .request_bytes = asked.megabytes << 20,
      .request_seconds = static_cast<double>(asked.seconds),
      .job_seconds = static_cast<double>(asked.job_seconds),
      .folder = asked.folder,
      .jobs = server::JobsOptions{.folder = asked.state,
                                  .most = static_cast<size_t>(asked.jobs),
                                  .threads = static_cast<int>(asked.job_threads)}};
  if (!asked.folder.empty() && !is_folder(asked.folder))
    throw UsageError(fmt::format("--allow-dir: there is no folder {}", printable(asked.folder)));
  if (!server::is_loopback(asked.host) && api_options.token.empty() && !asked.open)
    throw UsageError(
        fmt::format("--host {} is reached by other machines: set the variable "
                    "TILECAST_TOKEN, which each request must then state, or give "
                    "--no-token",
                    printable(asked.host)));
  api_options.hosts.push_back(
      asked.host.find(':') == std::string::npos ? asked.host : fmt::format("[{}]", asked.host));
  for (const std::string& name : asked.names) {
    if (name.find_first_of(": /") != std::string::npos)
      throw UsageError(
          fmt::format("--allow-host: expected a name without port, found '{}'", shown_name(name)));
    api_options.hosts.push_back(lower_case(name));
  }
  const server::Api api(api_options, asked.forecaster.load());
  server::HttpServer http(api, {.host = asked.host,
                                .port = static_cast<uint16_t>(asked.port),
                                .threads = static_cast<int>(asked.threads),
                                .most_waiting = static_cast<size_t>(asked.waiting)});
  // Flushed: what starts the service waits for this line.
  const std::string address = fmt::format("http://{}:{}/", api_options.hosts[3], http.port());
  fmt::print("tilecast listens on {}v1/openapi.json\nThe page: {}\n", address, address);
  std::fflush(stdout);
  http.run();
}

}  // namespace

Command serve_command() {
  return {.name = "serve",
          .help = "A service over HTTP: forecasts, plans and all other questions as JSON",
          .usage = {"[options]"},
          .groups = serve_groups,
          .examples = {"tilecast serve --port 8080",
                       "curl localhost:8080/v1/forecast -d '{\"model\": \"gpt2\", \"gpu\": "
                       "\"H100\", \"batch\": 4}'"},
          .run = run_serve};
}

}  // namespace tilecast
