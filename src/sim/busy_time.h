#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace tilecast {

/// Intervals of time in which something is busy; they may overlap.
class BusyTime {
 public:
  void add(double start_s, double end_s) {
    if (end_s > start_s) intervals_.emplace_back(start_s, end_s);
  }
  double seconds() const { return length(joined()); }
  /// The time in which this is busy and `other` is not.
  double seconds_outside(const BusyTime& other) const {
    BusyTime both = other;
    both.intervals_.insert(both.intervals_.end(), intervals_.begin(), intervals_.end());
    return both.seconds() - other.seconds();
  }

 private:
  using Intervals = std::vector<std::pair<double, double>>;

  Intervals joined() const {
    Intervals sorted = intervals_, result;
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [start, end] : sorted) {
      if (!result.empty() && start <= result.back().second) {
        result.back().second = std::max(result.back().second, end);
      } else {
        result.emplace_back(start, end);
      }
    }
    return result;
  }
  static double length(const Intervals& intervals) {
    double sum = 0;
    for (const auto& [start, end] : intervals) sum += end - start;
    return sum;
  }

  Intervals intervals_;
};

}  // namespace tilecast
