#pragma once

#include <cstdint>
#include <functional>
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
  size_t rows() const { return row_low_.size(); }

  /// Where the simplex method has a variable, or the sum of a row, in Clp's numbers.
  enum class Status : uint8_t { kBasic = 1, kAtHigh = 2, kAtLow = 3 };
  /// Where the simplex method begins or ends: as many variables and rows are basic as there are
  /// rows.
  struct Basis {
    std::vector<Status> columns, rows;
    bool empty() const { return columns.empty(); }
  };

  struct Solution {
    bool feasible = false;
    /// No solution is better by more than the gap; of a program that is not feasible: none is.
    /// False: the solver gave up.
    bool proven = true;
    size_t proven_objectives = 0;          ///< so many of the first are
    std::vector<double> values;            ///< of the columns
    std::vector<double> objective_values;  ///< of the objectives
    /// Without whole numbers, of each objective by row: how much better it would be with one more.
    std::vector<std::vector<double>> row_prices;
    int64_t steps = 0;  ///< of the simplex method, without whole numbers
  };
  /// A basis near the best one of an objective, after those before are solved; empty: none is
  /// known. A good one saves nearly all steps, a bad one costs time: the solution is as good.
  using Start = std::function<Basis(size_t objective, const Solution& before)>;

  /// Maximizes the first objective (a factor for each column), then the second among the best of
  /// the first, and so on. `gap`: how much better, relative to the value, an unknown solution with
  /// whole numbers may be. Deterministic: Cbc ends by a number of nodes, not by time. Throws
  /// Error{kUnsupported} if Cbc cannot be loaded, or takes no factors as large as these.
  Solution maximize(const std::vector<std::vector<double>>& objectives, double gap = 0,
                    const Start& start = {}) const;

 private:
  class Simplex;
  Solution maximize_shares(const std::vector<std::vector<double>>& objectives,
                           const Start& start) const;
  Solution maximize_whole(const std::vector<std::vector<double>>& objectives,
                          const std::vector<int>& whole, double gap) const;

  std::vector<double> row_low_, row_high_, low_, high_;
  std::vector<Values> values_;
  std::vector<int> start_{0}, row_of_;
  std::vector<double> factor_;
};

/// Throws Error{kUnsupported} where Cbc cannot be loaded.
void require_cbc();

}  // namespace tilecast
