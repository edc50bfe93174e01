#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "tilecast/forecast.h"

namespace tilecast {

/// Progress on standard error, of what takes more than 2 s: the share that is done, the count, the
/// estimated rest of the time. On a terminal a line that is drawn again and goes at the end; else a
/// line for each tenth.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Any number of threads may call it.
  void show(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void begin_count(const Progress& progress, Clock::time_point now);

  std::mutex mutex_;
  const bool terminal_;
  const Clock::time_point start_;
  std::string unit_;  ///< what is counted now
  Clock::time_point counted_from_;
  size_t done_before_ = 0;  ///< of this count, at `counted_from_`
  Clock::time_point drawn_;
  size_t tenths_ = 0;  ///< that lines were written for
  bool on_screen_ = false;
};

/// " 40 %  4,000 of 10,000 candidates, 12 s left  note"; `rate_per_s` 0: not known yet.
std::string progress_text(const Progress& progress, double rate_per_s);

}  // namespace tilecast
