#pragma once

// Where the embedding tables of a recommendation model are: what a placement costs. Goals: exact
// for the cost model below, cheap enough for millions of placements. Non-goals: input ids, which
// are sent to the tables' ranks while the batch before is computed (TorchRec's pipeline); hosts'
// memory.
//
//   cost = slowest forward + slowest backward + exchange of sums + exchange of their gradients
//        + all-reduces of replicated tables
//
// Inference has the first and the third of these alone.
//
// The exchanges make all ranks wait for each other, so each phase takes as long as its slowest
// rank. An exchange takes as long as the rank that sends most.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

enum class ShardWay : uint8_t {
  kTableWise,   ///< the whole table on one rank
  kColumnWise,  ///< each part has some columns of all rows
  kRowWise,     ///< each part has some rows, and sends sums over them
  kReplicated,  ///< on all ranks, each for its own samples
};
constexpr std::string_view kShardWayWords[] = {"table_wise", "column_wise", "row_wise",
                                               "replicated"};

/// One of the equal parts of a table.
struct TableShard {
  double forward_s = 0, backward_s = 0;
  double columns = 0;  ///< numbers that are sent for each sample
  double lookups = 0;  ///< of a batch
  int64_t bytes = 0;   ///< of rows and optimizer states
};

/// A way to divide a table. The parts are on different ranks; replicated: on all of them.
struct ShardChoice {
  ShardWay way = ShardWay::kTableWise;
  int64_t parts = 1;
  TableShard part;
  double reduce_bytes = 0;  ///< the gradient of a replicated table, which is all-reduced
};

struct ShardTable {
  std::string name;
  std::vector<ShardChoice> choices;  ///< at least one; the first one is table-wise
};

struct ShardProblem {
  int64_t ranks = 1;
  int64_t bytes_per_rank = 0;  ///< that tables may take
  std::vector<ShardTable> tables;
  /// Seconds of all exchanges of a batch if the rank that sends most sends so many columns in each;
  /// must not fall.
  std::function<double(double columns)> exchange_s;
  /// Seconds of the all-reduce of the gradients of all replicated tables together; must not fall.
  std::function<double(double bytes)> all_reduce_s;
};

/// For each table: its choice, and the rank of each part. Replicated tables list all ranks.
struct TablePlace {
  size_t choice = 0;
  std::vector<int32_t> ranks;
  bool operator==(const TablePlace&) const = default;
};
using TablePlacement = std::vector<TablePlace>;

/// Sums over the parts on one rank.
struct RankLoad {
  double forward_s = 0, backward_s = 0, columns = 0, lookups = 0;
  int64_t bytes = 0, parts = 0;
  void add(const TableShard& part, int sign = 1);
};
std::vector<RankLoad> rank_loads(const ShardProblem& problem, const TablePlacement& placement);

struct PlacementCost {
  double forward_s = 0, backward_s = 0, exchange_s = 0, reduce_s = 0;
  int64_t missing_bytes = 0;  ///< sum over the ranks of what does not fit; 0: it fits
  double total_s() const { return forward_s + backward_s + exchange_s + reduce_s; }
};
PlacementCost cost_of(const ShardProblem& problem, const TablePlacement& placement);

/// No placement costs less: each table divided in its cheapest way and spread evenly.
double cost_bound(const ShardProblem& problem);

/// The least cost of the tables, each in its cheapest way, over all ranks.
int64_t least_bytes(const ShardProblem& problem);

}  // namespace tilecast
