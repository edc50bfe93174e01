#pragma once

// Placement of embedding tables on the ranks of a cluster. Library: tilecast::api.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/parallel.h"

namespace tilecast {

/// Request for a placement.
struct ShardQuery {
  std::string tables;     ///< file with a list of tables, or a recommendation model
  std::string cluster;    ///< id, alias or file
  int64_t nodes = 0;      ///< of the cluster; 0: as the cluster's file says
  int64_t batch = 65536;  ///< samples of all ranks; default: that of MLPerf's DLRM-DCNv2
  /// Dtype of the sums that ranks exchange, and of tables that state none.
  std::string dtype = "fp32";
  /// Share of each GPU's memory that tables may use. Default: TorchRec's planner keeps 15 % free
  /// (torchrec/distributed/planner/storage_reservations.py).
  double memory_share = 0.85;
  uint64_t seed = 1;  ///< of the search
};

/// Seconds of a step that tables cause: their sum is what a placement is judged by.
struct ShardCost {
  double forward_s = 0;   ///< of the slowest rank
  double backward_s = 0;  ///< of the slowest rank, with the optimizer
  double exchange_s = 0;  ///< of sums and of their gradients
  double reduce_s = 0;    ///< gradients of replicated tables

  double total_s() const { return forward_s + backward_s + exchange_s + reduce_s; }
};

/// Where a table is.
struct ShardedTable {
  std::string name;
  std::string_view way;       ///< "table_wise", "column_wise", "row_wise" or "replicated"
  int64_t rows = 0, dim = 0;  ///< of the whole table
  std::string reuse;          ///< how its rows repeat: a name of the file, or "uniform"
  int64_t bytes = 0;          ///< of a part, with optimizer states
  double forward_s = 0;       ///< of a part, also the next
  double backward_s = 0;
  std::vector<int64_t> ranks;  ///< one for each part
};

/// A placement by a simple rule, for comparison.
struct ShardBaseline {
  std::string_view name;  ///< "size", "lookups" or "cost": what the rule balances
  bool fits = true;
  ShardCost cost;  ///< if it fits
};

struct ShardForecast {
  std::string cluster, cluster_name, gpu, dtype;
  int64_t nodes = 1, ranks = 1, batch = 0;
  int64_t tables_bytes = 0;  ///< of all tables, once, with optimizer states
  int64_t usable_bytes = 0;  ///< of each GPU
  ShardCost cost;
  /// No placement takes less: loads spread evenly over all ranks.
  double bound_s = 0;
  std::vector<ShardedTable> tables;
  std::vector<RankTables> rank_tables;
  std::vector<ShardBaseline> baselines;
  bool extrapolated = true;  ///< FBGEMM's kernels were not measured
  std::vector<std::string> warnings;
};

/// The fastest placement that a search finds. A pure function of the query. Throws
/// Error{kNotFound} for an unknown cluster or file, Error{kInput} for a broken file and where the
/// tables do not fit: the message says how much is missing.
ShardForecast shard_tables(const ShardQuery& query);

}  // namespace tilecast
