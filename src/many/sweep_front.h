#pragma once

// The points of a sweep that no other one beats.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "many/sweep_rows.h"

namespace tilecast {

/// What points are compared by.
struct FrontField {
  size_t column = 0;  ///< in the rows' header
  std::string name;
  bool more_is_better = false;

  std::string text() const { return (more_is_better ? "max:" : "min:") + name; }
};

/// The fields of `names`: "latency_s", "time", "max:sm_count". Throws OptionError for one that rows
/// do not have, that is no number, or of which it is not known what is better.
std::vector<FrontField> front_fields(const std::vector<std::string>& names, const SweepSpec& spec);

/// Takes points one at a time, and keeps those that no other one of the same group beats. Of points
/// that are equal in all fields it has the first.
class SweepFront {
 public:
  /// `groups`: columns whose values tell groups apart.
  SweepFront(std::vector<FrontField> fields, std::vector<size_t> groups);

  /// Points that lack one of the numbers are left out.
  void take(const std::vector<std::string>& cells);
  /// Their numbers: groups by their values, in each by the first field.
  std::vector<int64_t> points() const;

 private:
  struct Point {
    std::vector<double> costs;  ///< less is better
    int64_t index = 0;
  };
  struct Group {
    std::vector<Point> points;
    size_t most = 1 << 10;  ///< points to collect before those that are beaten go
  };
  static bool beats(const Point& a, const Point& b);
  static void reduce(std::vector<Point>& points);

  std::vector<FrontField> fields_;
  std::vector<size_t> groups_;
  std::map<std::vector<std::string>, Group> alike_;
};

}  // namespace tilecast
