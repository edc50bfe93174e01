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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ShardCost", "Seconds of a step that tables cause.");
    field("forward_s", "s", "of the slowest rank", &ShardCost::forward_s);
    field("backward_s", "s", "of the slowest rank, with the sparse optimizer",
          &ShardCost::backward_s);
    field("exchange_s", "s", "all-to-all of sums, and of their gradients", &ShardCost::exchange_s);
    field("reduce_s", "s", "all-reduces of the gradients of replicated tables",
          &ShardCost::reduce_s);
    field("total_s", "s", "the sum: what a placement is judged by", &ShardCost::total_s);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ShardedTable", "Where a table is.");
    field("name", "", "of the table", &ShardedTable::name);
    field("way", "", "how it is divided", &ShardedTable::way,
          {"table_wise", "column_wise", "row_wise", "replicated"});
    field("rows", "", "of the whole table", &ShardedTable::rows);
    field("dim", "", "of the whole table", &ShardedTable::dim);
    field("reuse", "", "how its rows repeat: a name of the file's `reuse`, or uniform",
          &ShardedTable::reuse);
    field("bytes", "bytes", "of one part, with optimizer states", &ShardedTable::bytes);
    field("forward_s", "s", "of one part", &ShardedTable::forward_s);
    field("backward_s", "s", "of one part", &ShardedTable::backward_s);
    field("ranks", "", "one for each part", &ShardedTable::ranks);
  }
};

/// A placement by a simple rule, for comparison.
struct ShardBaseline {
  std::string_view name;  ///< "size", "lookups" or "cost": what the rule balances
  bool fits = true;
  ShardCost cost;  ///< if it fits

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ShardRule", "A placement of whole tables by a simple rule, for comparison.");
    field("rule", "", "what the rule balances over the ranks", &ShardBaseline::name,
          {"size", "lookups", "cost"});
    field("fits", "", "whether the tables fit", &ShardBaseline::fits);
    field("cost", "", "null: they do not fit",
          [](const ShardBaseline& x) { return x.fits ? &x.cost : nullptr; });
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Placement", "A placement of embedding tables on the ranks of a cluster.");
    field("schema_version", "", "of this schema", [](const ShardForecast&) { return 1; });
    field("cluster", "", "id of the cluster", &ShardForecast::cluster);
    field("gpu", "", "id of the GPU", &ShardForecast::gpu);
    field("dtype", "", "of exchanged sums", &ShardForecast::dtype);
    field("nodes", "", "that take part", &ShardForecast::nodes);
    field("ranks", "", "GPUs that take part", &ShardForecast::ranks);
    field("batch", "", "samples of a step, over all ranks", &ShardForecast::batch);
    field("tables_bytes", "bytes", "of all tables, once, with optimizer states",
          &ShardForecast::tables_bytes);
    field("usable_bytes", "bytes", "of each GPU's memory", &ShardForecast::usable_bytes);
    field("cost", "", "seconds of a step", &ShardForecast::cost);
    field("bound_s", "s", "no placement takes less", &ShardForecast::bound_s);
    field("rules", "", "placements of whole tables by simple rules", &ShardForecast::baselines);
    field("rank_tables", "", "what each rank holds", &ShardForecast::rank_tables);
    field("tables", "", "where each table is", &ShardForecast::tables);
    field("extrapolated", "", "FBGEMM's kernels were not measured", &ShardForecast::extrapolated);
    field("warnings", "", "sentences that readers of the numbers should know",
          &ShardForecast::warnings);
  }
};

/// The fastest placement that a search finds. A pure function of the query. Throws
/// Error{kNotFound} for an unknown cluster or file, Error{kInput} for a broken file and where the
/// tables do not fit: the message says how much is missing.
ShardForecast shard_tables(const ShardQuery& query);

}  // namespace tilecast
