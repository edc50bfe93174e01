#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tilecast {

/// The number of cores that the process may use.
int usable_cores();

/// Runs `work(0)` … `work(count - 1)`, which must not throw, on so many threads (0: one for each
/// core that the process may use). The calling thread works too, and calls `called`, which may be
/// null, from time to time; what it throws ends the run.
template <typename Work>
void run_parallel(size_t count, int wanted, const std::function<void()>& called, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&](const std::function<void()>& poll) {
    constexpr size_t kBetweenPolls = 64;
    for (size_t done = 0;; ++done) {
      if (poll && done % kBetweenPolls == 0) poll();
      const size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      work(index);
    }
  };
  const auto threads = static_cast<size_t>(wanted > 0 ? wanted : usable_cores());
  std::vector<std::jthread> others;
  std::exception_ptr stopped;
  for (size_t i = 1; i < std::min(threads, count); ++i) others.emplace_back([&] { run(nullptr); });
  try {
    run(called);
  } catch (...) {
    stopped = std::current_exception();
    next = count;
  }
  others.clear();  // joins them
  if (stopped) std::rethrow_exception(stopped);
}

/// The same for work that may throw: throws the first exception at the end.
template <typename Work>
void run_all(size_t count, int wanted, const Work& work) {
  std::mutex mutex;
  std::exception_ptr thrown;
  run_parallel(count, wanted, nullptr, [&](size_t i) {
    try {
      work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tilecast
