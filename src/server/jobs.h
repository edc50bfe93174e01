#pragma once

// Long requests as jobs: who asks gets a name at once, and the answer later.
//
// A job is a request that is answered on a thread of its own kind. With a folder it lies there as a
// file (job_file.h), so a service that was ended or killed goes on with it: finished is only what
// lies there finished. What is interrupted begins again; answers have no parts to go on from.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/job_file.h"
#include "server/message.h"
#include "tilecast/forecast.h"

namespace tilecast::server {

struct JobsOptions {
  std::string folder;             ///< "": jobs are lost when the service ends
  size_t most = 1000;             ///< jobs that are kept, finished or not
  int64_t most_bytes = 0;         ///< of their requests and results; 0: kUsualBytes
  double most_age_s = 7 * 86400;  ///< of a finished one
  int threads = 1;                ///< jobs that run at a time
};

class Jobs {
 public:
  /// Answers the request of a job; nullopt: it was cancelled before.
  using Run = std::function<std::optional<HttpResponse>(const HttpRequest&, const ShowProgress&,
                                                        const std::atomic<bool>& cancelled)>;

  /// Reads the jobs of the folder, which it makes and locks. Throws Error{kIo} where it cannot,
  /// and where another service has it.
  Jobs(JobsOptions options, Run run);
  /// Interrupts what runs.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// A new job: 202 with its place, 503 where there is no room.
  HttpResponse add(const HttpRequest& request);

  /// `path`: what follows /v1/jobs/: "ID" or "ID/result". GET and HEAD give the state, or a stream
  /// of states where the request accepts text/event-stream, or the answer; DELETE forgets the job
  /// and cancels it.
  HttpResponse answer(const HttpRequest& request, const std::string& path);

  /// Interrupts what runs; with a folder it goes on when the service begins again.
  void end();

  struct Counts {
    int64_t waiting = 0, running = 0, finished = 0, bytes = 0;
  };
  Counts counts() const;

 private:
  struct Job;
  using Lock = std::unique_lock<std::mutex>;

  void load();
  void work();
  void run_one(const std::shared_ptr<Job>& job);
  void finish(const std::shared_ptr<Job>& job, HttpResponse&& response);
  void interrupt(const std::shared_ptr<Job>& job);
  /// Takes the next that waits; null: the service ends.
  std::shared_ptr<Job> next();
  std::shared_ptr<Job> find(const std::string& id);
  /// Forgets what is finished for longest, with the lock held. False: there is no room for so many
  /// more.
  bool make_room(size_t jobs, int64_t bytes);
  void drop_old();
  void forget(std::map<std::string, std::shared_ptr<Job>>::iterator at);
  void changed(Job& job);

  HttpResponse state(const std::shared_ptr<Job>& job, const HttpRequest& request);
  HttpResponse events(const std::shared_ptr<Job>& job);
  HttpResponse result(const std::shared_ptr<Job>& job);
  static std::string text_of(const Job& job, bool in_one_line);

  JobsOptions options_;
  Run run_;
  std::unique_ptr<JobFolder> folder_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  int64_t bytes_ = 0;
  uint64_t made_ = 0;  ///< jobs so far: their order
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tilecast::server
