#pragma once

#include "devices/cluster.h"
#include "embedding/tables.h"
#include "placement/problem.h"
#include "tilecast/choices.h"

namespace tilecast {

/// Work of the ranks of a cluster: tables, and a batch over all ranks.
struct PlacementSetup {
  const TableSet& tables;
  const Cluster& cluster;
  int64_t ranks = 1;
  int64_t batch = 1;
  DType dtype = DType::kFp32;  ///< of exchanged sums, and of tables that state none
  int64_t bytes_per_rank = 0;  ///< that tables may take
  Mode mode = Mode::kTraining;
};

/// The work of one part of a table. `batch`: see PlacementSetup.
TableWork shard_work(const PlacementSetup& setup, size_t table, const ShardChoice& choice);

/// Bytes of the rows of one part, and of its optimizer states.
struct ShardBytes {
  int64_t rows_bytes = 0, state_bytes = 0;
};
ShardBytes shard_bytes(const PlacementSetup& setup, size_t table, const ShardChoice& choice);

/// The ways to divide each table, with the times of the cluster's GPUs and links. Columns are
/// divided into parts of at least 32 that are multiples of 4 (FBGEMM reads four numbers at once);
/// rows and columns into powers of two, rows also over all ranks. Throws Error{kUnsupported} for a
/// device that is not a GPU.
ShardProblem placement_problem(const PlacementSetup& setup);

/// Seconds of one exchange of sums if the rank that sends most sends `columns` numbers for each
/// sample of the batch.
double exchange_s(const PlacementSetup& setup, double columns);
/// Seconds of the exchange of ids before the lookups, if the rank that gets most gets so many
/// `lookups` of `tables` tables: ids, and the number of each sample's in each table.
double exchange_ids_s(const PlacementSetup& setup, double lookups, int64_t tables);
/// Seconds that a replicated table adds to its update of used rows: its gradient is dense, so zeros
/// are filled in, and all rows are updated.
double dense_update_s(const PlacementSetup& setup, size_t table, const ShardChoice& choice);
/// Seconds of an all-reduce over all ranks, of gradients in fp32.
double all_reduce_s(const PlacementSetup& setup, int64_t bytes);

}  // namespace tilecast
