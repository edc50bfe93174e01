#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "tilecast/search.h"

namespace tilecast {

/// The number of cores that the process may use.
int usable_cores();

/// Runs `work(0)` … `work(count - 1)`, which must not throw, on several threads. The calling thread
/// works too, and polls; what the poll throws ends the run.
template <typename Work>
void run_parallel(size_t count, const ManyOptions& options, const Work& work) {
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
  const auto threads = static_cast<size_t>(options.threads > 0 ? options.threads : usable_cores());
  std::vector<std::jthread> others;
  std::exception_ptr stopped;
  for (size_t i = 1; i < std::min(threads, count); ++i) others.emplace_back([&] { run(nullptr); });
  try {
    run(options.poll);
  } catch (...) {
    stopped = std::current_exception();
    next = count;
  }
  others.clear();  // joins them
  if (stopped) std::rethrow_exception(stopped);
}

}  // namespace tilecast
