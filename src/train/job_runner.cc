#include "train/job_runner.h"

#include <atomic>
#include <exception>
#include <thread>

namespace tilecast {

JobRunner::JobRunner(int threads, int total_epochs, ShowProgress show)
    : threads_(threads), show_(std::move(show)) {
  progress_.total_epochs = total_epochs;
}

void JobRunner::run(const std::vector<Job>& jobs) {
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  const auto work = [&] {
    while (true) {
      const size_t j = next.fetch_add(1);
      if (j >= jobs.size()) return;
      try {
        jobs[j]([this](const EpochReport& epoch) { report(epoch); });
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure = std::current_exception();
        next = jobs.size();
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < threads_; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

void JobRunner::report(const EpochReport& epoch) {
  const std::lock_guard lock(mutex_);
  history_[epoch.task].push_back(epoch);
  // Epochs of before an interruption are no progress of this run.
  if (epoch.resumed) return;
  progress_.last = epoch;
  progress_.finished_epochs = 0;
  for (const auto& [name, epochs] : history_) progress_.finished_epochs += epochs.back().epoch;
  if (show_) show_(progress_);
}

}  // namespace tilecast
