#pragma once

// A placement that changes step by step, with the loads of its ranks.

#include <optional>
#include <vector>

#include "placement/problem.h"

namespace tilecast {

class PlacementState {
 public:
  explicit PlacementState(const ShardProblem& problem);

  const TablePlacement& placement() const { return placement_; }
  const std::vector<RankLoad>& loads() const { return loads_; }
  bool is_placed(size_t table) const { return !placement_[table].ranks.empty(); }

  /// The value that the search minimizes: the cost, a little of the mean square of the ranks'
  /// loads, so that it sees progress below the maximum, and a high price of what does not fit.
  double score() const;
  double total_s() const;
  int64_t missing_bytes() const;

  void remove(size_t table);
  void put(size_t table, TablePlace place);
  /// Places the table in one way, on the ranks where it delays least.
  TablePlace best_place(size_t table, size_t choice) const;
  /// Places the table in the way that gives the lowest score. `whole_only`: undivided if that fits.
  void insert(size_t table, bool whole_only = false);

  /// Tables with a part on the rank that is slowest in any of the three sums.
  std::vector<size_t> critical_tables() const;
  /// A part's weight in the balance of the ranks, seconds.
  double weight(const TableShard& part) const;
  double weight(const RankLoad& load) const;

 private:
  const ShardChoice& choice_of(size_t table) const {
    return problem_.tables[table].choices[placement_[table].choice];
  }
  struct Most {
    double forward_s = 0, backward_s = 0, columns = 0;
  };
  Most most() const;
  void add(size_t table, int sign);

  const ShardProblem& problem_;
  TablePlacement placement_;
  std::vector<RankLoad> loads_;
  double reduce_bytes_ = 0;
  double column_s_ = 0;  ///< of both exchanges, per column: a mean slope
};

}  // namespace tilecast
