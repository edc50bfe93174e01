#pragma once

// Whether the requests of a closed loop are sure to miss limits, while they are simulated: then
// nobody needs the rest of the simulation.

#include <cstddef>

#include "sim/serving.h"

namespace tilecast {

/// Judges the same requests as `summarize`: the steady part, or all where there is none.
class LimitWatch {
 public:
  /// Without limits, or with requests that come at their own times, nothing is ever sure.
  explicit LimitWatch(const ServingLoad& load);

  /// Requests are numbered in the order in which they are sent. Each time is noted once.
  void note_ttft(size_t request, double seconds) { note(ttft_, request, seconds); }
  void note_tpot(size_t request, double seconds) { note(tpot_, request, seconds); }
  /// Whatever the times that are still unknown turn out to be.
  bool surely_missed() const { return missed_; }

 private:
  struct Limit {
    double most_s = 0;      ///< 0: no limit
    size_t late_more = 0;   ///< of a percentile: so many late requests more miss it
    double sum_more_s = 0;  ///< of a mean: so many seconds more miss it
  };
  Limit limit_of(const std::optional<double>& seconds, size_t requests) const;
  void note(Limit& limit, size_t request, double seconds);

  size_t begin_ = 0, end_ = 0;  ///< the requests that are judged
  std::optional<double> share_;
  Limit ttft_, tpot_;
  bool missed_ = false;
};

}  // namespace tilecast
