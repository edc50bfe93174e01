#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/budget.h"

namespace tilecast {

/// The number of cores that the process may use.
int usable_cores();

/// Starts threads so that with the calling one `count` run, on the budget of the calling one. Where
/// the system has no more of them (a limit on processes, or on memory), the work goes on with those
/// that there are.
template <typename Work>
void start_threads(std::vector<std::jthread>& threads, size_t count, const Work& work) {
  const auto with_budget = [work, budget = &Budget::here()] {
    take_budget(*budget);
    work();
  };
  try {
    threads.reserve(count);
    while (threads.size() + 1 < count) threads.emplace_back(with_budget);
  } catch (const std::system_error&) {
    return;  // with the threads that there are
  } catch (const std::bad_alloc&) {
    return;
  }
}

/// Runs `work(0)` … `work(count - 1)` on so many threads (0: one for each core that the process may
/// use). The calling thread works too, and calls `called`, which may be null, from time to time.
/// After an exception, also of `called` or because the budget is used up, what has not begun is
/// left out, and the first one is thrown at the end.
template <typename Work>
void run_parallel(size_t count, int wanted, const std::function<void()>& called, const Work& work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto run = [&](const std::function<void()>& poll) {
    constexpr size_t kBetweenPolls = 64;
    try {
      for (size_t done = 0;; ++done) {
        if (poll && done % kBetweenPolls == 0) poll();
        const size_t index = next.fetch_add(1, std::memory_order_relaxed);
        if (index >= count) return;
        Budget::here().check("working through a list");
        work(index);
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  const auto threads = static_cast<size_t>(wanted > 0 ? wanted : usable_cores());
  std::vector<std::jthread> others;
  start_threads(others, std::min(threads, count), [&] { run(nullptr); });
  run(called);
  others.clear();  // joins them
  if (thrown) std::rethrow_exception(thrown);
}

/// The same without a call from time to time.
template <typename Work>
void run_all(size_t count, int wanted, const Work& work) {
  run_parallel(count, wanted, nullptr, work);
}

}  // namespace tilecast
