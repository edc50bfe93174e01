#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilecast {

/// A linear program, also with variables that are whole numbers. Rows come before the columns that
/// have entries in them.
class LinearProgram {
 public:
  struct Entry {
    int row;
    double factor;
  };
  enum class Values : uint8_t { kAny, kWhole };
  static constexpr double kNoLimit = 1e30;  ///< Cbc's infinity

  /// low <= Σ factor · column <= high; gives the row's number.
  int add_row(double low, double high);
  /// A variable within [low, high]; gives its number.
  int add_column(double low, double high, std::span<const Entry> entries,
                 Values values = Values::kAny);
  void set_range(int column, double low, double high);

  size_t columns() const { return low_.size(); }

  struct Solution {
    bool feasible = false;
    /// No solution is better by more than the gap; of a program that is not feasible: none is.
    /// False: the solver gave up.
    bool proven = true;
    size_t proven_objectives = 0;          ///< so many of the first are
    std::vector<double> values;            ///< of the columns
    std::vector<double> objective_values;  ///< of the objectives
  };
  /// Maximizes the first objective (a factor for each column), then the second among the best of
  /// the first, and so on. `gap`: how much better, relative to the value, an unknown solution with
  /// whole numbers may be. Deterministic: Cbc ends by a number of nodes, not by time. Throws
  /// Error{kUnsupported} if Cbc cannot be loaded, or takes no factors as large as these.
  Solution maximize(const std::vector<std::vector<double>>& objectives, double gap = 0) const;

 private:
  std::vector<double> row_low_, row_high_, low_, high_;
  std::vector<Values> values_;
  std::vector<int> start_{0}, row_of_;
  std::vector<double> factor_;
};

/// Throws Error{kUnsupported} where Cbc cannot be loaded.
void require_cbc();

}  // namespace tilecast
