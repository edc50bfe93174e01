#include "server/jobs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::server {
namespace {

using Steady = std::chrono::steady_clock;
using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kUsualBytes = int64_t{256} << 20, kUsualFolderBytes = int64_t{4} << 30;
/// Of one answer: what a client and a file can hold.
constexpr size_t kMostResultBytes = size_t{256} << 20;
/// A job during which the service ended so often is taken for the reason.
constexpr int64_t kMostRuns = 3;

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// "2026-11-26T20:18:25Z".
std::string time_text(double seconds) {
  const auto whole = static_cast<std::time_t>(std::clamp(seconds, 0.0, 253402300799.0));  // 9999
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(whole));
}

/// "plan" of "/v1/plan?fields=latency_s".
std::string question_of(const std::string& target) {
  const size_t start = std::min(target.rfind('/', target.find('?')) + 1, target.size());
  return target.substr(start, target.find('?') - start);
}

HttpResponse not_there() {
  return problem(404,
                 "there is no such job: it was never made, was deleted, or made room for "
                 "newer ones");
}

}  // namespace

struct Jobs::Job {
  std::string id;
  JobHead head;
  std::string body;    ///< of the request or the answer, where no folder has it
  int64_t bytes = 0;   ///< of the body
  uint64_t order = 0;  ///< of the first
  bool running = false, forgotten = false;
  std::atomic<bool> cancelled{false};
  std::optional<Progress> progress;
  Steady::time_point begun;
  uint64_t version = 1;  ///< of what its state says

  bool is_finished() const { return head.status != 0; }
};

Jobs::Jobs(JobsOptions options, Run run) : options_(std::move(options)), run_(std::move(run)) {
  if (options_.most_bytes == 0)
    options_.most_bytes = options_.folder.empty() ? kUsualBytes : kUsualFolderBytes;
  if (!options_.folder.empty()) {
    folder_ = std::make_unique<JobFolder>(options_.folder);
    load();
  }
  for (int i = 0; i < std::max(1, options_.threads); ++i) threads_.emplace_back([this] { work(); });
}

Jobs::~Jobs() {
  end();
  for (std::thread& thread : threads_) thread.join();
}

void Jobs::load() {
  std::vector<JobFolder::Found> found = folder_->read();
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.head.created_s < b.head.created_s; });
  for (JobFolder::Found& one : found) {
    auto job = std::make_shared<Job>();
    job->id = one.id;
    job->head = std::move(one.head);
    job->bytes = one.bytes;
    job->order = ++made_;
    bytes_ += job->bytes;
    jobs_.emplace(one.id, std::move(job));
  }
  drop_old();
}

void Jobs::end() {
  const Lock lock(mutex_);
  ending_ = true;
  for (const auto& [id, job] : jobs_) {
    if (job->running) job->cancelled = true;
  }
  wake_.notify_all();
}

Jobs::Counts Jobs::counts() const {
  const Lock lock(mutex_);
  Counts counts{.bytes = bytes_};
  for (const auto& [id, job] : jobs_)
    ++(job->is_finished() ? counts.finished : job->running ? counts.running : counts.waiting);
  return counts;
}

void Jobs::changed(Job& job) { ++job.version; }

std::shared_ptr<Jobs::Job> Jobs::find(const std::string& id) {
  const Lock lock(mutex_);
  drop_old();
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : at->second;
}

void Jobs::forget(std::map<std::string, std::shared_ptr<Job>>::iterator at) {
  Job& job = *at->second;
  job.forgotten = true;
  job.cancelled = true;
  changed(job);
  bytes_ -= job.bytes;
  if (folder_) folder_->remove(job.id);
  jobs_.erase(at);
}

void Jobs::drop_old() {
  const double oldest_s = now_s() - options_.most_age_s;
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const auto next = std::next(at);
    if (at->second->is_finished() && at->second->head.finished_s < oldest_s) forget(at);
    at = next;
  }
}

bool Jobs::make_room(size_t jobs, int64_t bytes) {
  drop_old();
  while (jobs_.size() + jobs > options_.most || bytes_ + bytes > options_.most_bytes) {
    auto oldest = jobs_.end();
    for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
      if (!at->second->is_finished()) continue;
      if (oldest == jobs_.end() || at->second->head.finished_s < oldest->second->head.finished_s)
        oldest = at;
    }
    if (oldest == jobs_.end()) return false;
    forget(oldest);
  }
  return true;
}

HttpResponse Jobs::add(const HttpRequest& request) {
  auto job = std::make_shared<Job>();
  job->id = new_job_id();
  job->head = {.target = request.target,
               .content_type = request.content_type,
               .accept = request.accept,
               .created_s = now_s(),
               .result_type = ""};
  job->bytes = static_cast<int64_t>(request.body.size());
  {
    const Lock lock(mutex_);
    if (ending_) return problem(503, "the service ends");
    if (!make_room(1, job->bytes)) {
      HttpResponse full = problem(503, "too many jobs wait");
      full.headers.emplace_back("Retry-After", "10");
      return full;
    }
    job->order = ++made_;
    bytes_ += job->bytes;
    // Until its file is there, no thread begins it.
    job->running = true;
    jobs_.emplace(job->id, job);
  }
  try {
    if (folder_)
      folder_->write(job->id, job->head, request.body);
    else
      job->body = request.body;
  } catch (...) {
    const Lock lock(mutex_);
    if (const auto at = jobs_.find(job->id); at != jobs_.end()) forget(at);
    throw;
  }
  const Lock lock(mutex_);
  job->running = false;
  wake_.notify_one();
  const std::string place = "/v1/jobs/" + job->id;
  return {.status = 202,
          .body = text_of(*job, false),
          .headers = {{"Location", place},
                      {"Preference-Applied", "respond-async"},
                      {"Retry-After", "1"}},
          .parts = nullptr};
}

std::shared_ptr<Jobs::Job> Jobs::next() {
  Lock lock(mutex_);
  while (!ending_) {
    std::shared_ptr<Job> first;
    for (const auto& [id, job] : jobs_) {
      if (job->is_finished() || job->running) continue;
      if (first == nullptr || job->order < first->order) first = job;
    }
    if (first != nullptr) {
      first->running = true;
      first->begun = Steady::now();
      changed(*first);
      return first;
    }
    wake_.wait(lock);
  }
  return nullptr;
}

void Jobs::work() {
  // All that a person waits for goes first. On Linux, a priority is a thread's.
  constexpr int kLowest = 15;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowest);
  while (const std::shared_ptr<Job> job = next()) {
    try {
      run_one(job);
    } catch (const std::exception& error) {  // the folder is full, or gone
      fmt::print(stderr, "tilecast: a job failed: {}\n", printable(error.what()));
      const Lock lock(mutex_);
      if (const auto at = jobs_.find(job->id); at != jobs_.end()) forget(at);
    }
  }
}

void Jobs::run_one(const std::shared_ptr<Job>& job) {
  HttpRequest request{.method = "POST",
                      .target = job->head.target,
                      .host = "",
                      .origin = "",
                      .authorization = "",
                      .body = folder_ ? folder_->body(job->id) : job->body,
                      .content_type = job->head.content_type,
                      .accept = job->head.accept,
                      .prefer = ""};
  if (job->head.runs >= kMostRuns)
    return finish(job, problem(500, fmt::format("the service ended {} times while it worked on "
                                                "this job: it is not tried again",
                                                kMostRuns)));
  if (folder_) {
    ++job->head.runs;
    folder_->write(job->id, job->head, request.body);
  }
  const auto show = [&](const Progress& progress) {
    const Lock lock(mutex_);
    job->progress = progress;
    changed(*job);
  };
  std::optional<HttpResponse> response = run_(request, show, job->cancelled);
  if (response && response->parts) {
    while (std::optional<std::string> part = response->parts->next()) {
      response->body += *part;
      if (job->cancelled || response->body.size() > kMostResultBytes) break;
    }
    response->parts = nullptr;
    if (job->cancelled) response.reset();
  }
  if (!response) return interrupt(job);
  if (response->body.size() > kMostResultBytes)
    response = problem(422, fmt::format("the answer takes more than {}: divide the request",
                                        format_bytes(kMostResultBytes)));
  finish(job, *std::move(response));
}

/// A job that is forgotten, or that the service ends before it is finished: the next one begins it
/// again, and this run is not held against it.
void Jobs::interrupt(const std::shared_ptr<Job>& job) {
  const Lock lock(mutex_);
  job->running = false;
  job->progress.reset();
  changed(*job);
  if (!folder_) return;
  if (job->forgotten) {
    folder_->remove(job->id);  // this thread may have written it since
  } else {
    --job->head.runs;
    folder_->write(job->id, job->head, folder_->body(job->id));
  }
}

void Jobs::finish(const std::shared_ptr<Job>& job, HttpResponse&& response) {
  JobHead head = job->head;
  head.finished_s = now_s();
  head.seconds = std::chrono::duration<double>(Steady::now() - job->begun).count();
  head.status = response.status;
  head.result_type = response.content_type;
  const auto bytes = static_cast<int64_t>(response.body.size());
  // It is finished once that cannot be lost.
  if (folder_) folder_->write(job->id, head, response.body);
  const Lock lock(mutex_);
  if (job->forgotten) {
    if (folder_) folder_->remove(job->id);
    return;
  }
  job->head = std::move(head);
  job->running = false;
  if (!folder_) job->body = std::move(response.body);
  bytes_ += bytes - std::exchange(job->bytes, bytes);
  changed(*job);
  make_room(0, 0);
}

HttpResponse Jobs::answer(const HttpRequest& request, const std::string& path) {
  const size_t slash = path.find('/');
  const std::string id = path.substr(0, slash);
  const std::string rest = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (!is_job_id(id) || (!rest.empty() && rest != "result")) return not_there();
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (!is_read && (request.method != "DELETE" || !rest.empty())) {
    HttpResponse response = problem(405, "expected GET, or DELETE to cancel the job");
    response.headers.emplace_back("Allow", rest.empty() ? "GET, HEAD, DELETE" : "GET, HEAD");
    return response;
  }
  const std::shared_ptr<Job> job = find(id);
  if (job == nullptr) return not_there();
  if (is_read) return rest == "result" ? result(job) : state(job, request);
  const Lock lock(mutex_);
  if (const auto at = jobs_.find(id); at != jobs_.end()) forget(at);
  return {.status = 204, .content_type = "", .body = "", .headers = {}, .parts = nullptr};
}

std::string Jobs::text_of(const Job& job, bool in_one_line) {
  const std::string place = "/v1/jobs/" + job.id;
  const char* state = job.forgotten       ? "cancelled"
                      : job.is_finished() ? job.head.status < 400 ? "done" : "failed"
                      : job.running && job.begun != Steady::time_point{} ? "running"
                                                                         : "waiting";
  OrderedJson json = {{"id", job.id},
                      {"question", question_of(job.head.target)},
                      {"state", state},
                      {"created", time_text(job.head.created_s)}};
  if (job.is_finished()) {
    json["finished"] = time_text(job.head.finished_s);
    json["seconds"] = std::round(1000 * job.head.seconds) / 1000;
    json["status"] = job.head.status;
    json["result"] = place + "/result";
  } else if (job.running && job.begun != Steady::time_point{}) {
    const double seconds = std::chrono::duration<double>(Steady::now() - job.begun).count();
    json["seconds"] = std::round(1000 * seconds) / 1000;
    if (job.progress)
      json["progress"] = {{"done", job.progress->done},
                          {"total", job.progress->total},
                          {"unit", job.progress->unit}};
  }
  return json.dump(in_one_line ? -1 : 1, ' ', false, OrderedJson::error_handler_t::replace) +
         (in_one_line ? "" : "\n");
}

HttpResponse Jobs::state(const std::shared_ptr<Job>& job, const HttpRequest& request) {
  if (request.method == "GET" && lists(request.accept, "text/event-stream")) return events(job);
  const Lock lock(mutex_);
  HttpResponse response{.body = text_of(*job, false), .headers = {}, .parts = nullptr};
  if (!job->is_finished()) response.headers.emplace_back("Retry-After", "1");
  return response;
}

/// Server-sent events: one when something changes, a comment now and then for the connection's
/// sake.
HttpResponse Jobs::events(const std::shared_ptr<Job>& job) {
  static constexpr auto kBetweenComments = std::chrono::seconds(15);
  auto next = [this, job, seen = uint64_t{0}, last = Steady::now(),
               over = false]() mutable -> std::optional<std::string> {
    const Lock lock(mutex_);
    if (over) return std::nullopt;
    if (job->version == seen) {
      if (ending_) return std::nullopt;
      if (Steady::now() - last < kBetweenComments) return "";
      last = Steady::now();
      return ": it goes on\n\n";
    }
    seen = job->version;
    last = Steady::now();
    over = job->is_finished() || job->forgotten;
    return fmt::format("event: state\ndata: {}\n\n", text_of(*job, true));
  };
  return {.content_type = "text/event-stream",
          .body = "",
          .headers = {{"Cache-Control", "no-store"}},
          .parts = std::make_shared<BodyParts>(BodyParts{.next = std::move(next)})};
}

HttpResponse Jobs::result(const std::shared_ptr<Job>& job) {
  Lock lock(mutex_);
  if (job->forgotten) return not_there();
  if (!job->is_finished()) {
    HttpResponse response = problem(
        409, fmt::format("the job is not finished; GET /v1/jobs/{} says how far it is", job->id));
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  HttpResponse response{.status = job->head.status,
                        .content_type = job->head.result_type,
                        .body = folder_ ? "" : job->body,
                        .headers = {},
                        .parts = nullptr};
  lock.unlock();
  if (folder_) response.body = folder_->body(job->id);
  return response;
}

}  // namespace tilecast::server
