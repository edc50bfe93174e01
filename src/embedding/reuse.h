#pragma once

// How often the rows of an embedding table are used in a batch, and what part of the lookups a
// cache answers. Goals: exact enough for LRU caches (docs/explanation/recommendation.md compares
// with simulations), fast enough for a search over thousands of shards. Non-goals: the order of
// lookups beyond how often each row occurs; rows that stay in the cache from one batch to the next.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilecast {

/// Bins of a reuse histogram, as in Meta's dlrm_datasets: rows that a batch uses once, twice, 3 to
/// 4, 5 to 8 times, …, 16,385 to 32,768 times, and more often.
inline constexpr size_t kReuseBins = 17;

/// For each bin, the share of a batch's lookups that go to rows of the bin. Shares sum up to 1.
using ReuseShares = std::array<double, kReuseBins>;

/// Rows that a batch uses exactly once, twice, 4, 8, … times: entry i counts those that it uses 2^i
/// times. All other lookups go to rows that are used once. As text: "a:b:c".
using ReuseCounts = std::vector<int64_t>;

/// The most entries of a list: rows that are used 65,536 times.
inline constexpr size_t kMostReuseCounts = kReuseBins;

/// Where lists of several tables follow each other, each with kMostReuseCounts numbers: the numbers
/// of a table without a list. A list of 0s alone is one: each lookup goes to a row of its own.
inline constexpr int64_t kNoReuseCounts = -1;
/// Appends a table's list; empty: it has none.
void append_counts(std::vector<int64_t>& lists, const ReuseCounts& counts);

/// The mean number of uses of the rows of a bin: uses are distributed log-uniformly inside a bin.
double mean_uses(size_t bin);

/// Rows that are used alike.
struct RowClass {
  double rows = 0;
  double uses = 0;  ///< of each, in the batch that was recorded
  /// `uses` is the mean of a Poisson distribution; else each row is used exactly so often.
  bool random = false;
};

/// The lookups of one table in one batch, in random order.
struct TableAccess {
  double lookups = 0;   ///< of this batch
  double recorded = 0;  ///< lookups of the batch for which the classes state their uses
  std::vector<RowClass> classes;

  /// A part of the rows with their lookups (row-wise sharding).
  TableAccess part_of_rows(double share) const;
  /// The same table with a part of the batch (data parallelism), or with a larger batch.
  TableAccess part_of_batch(double share) const;
};

/// Each lookup selects any of the rows.
TableAccess uniform_access(double rows, double lookups);

/// Uses as recorded with another batch of `recorded` lookups. A table with fewer rows than the
/// histogram needs uses each of them more often.
TableAccess histogram_access(const ReuseShares& shares, double rows, double lookups,
                             double recorded);

/// Why a batch of so many lookups of a table cannot use its rows so often; "": it can.
std::string contradiction(const ReuseCounts& counts, int64_t rows, int64_t lookups);

/// Uses as counted in another batch of `recorded` lookups, without contradiction. Where the table
/// has too few rows for the lookups that no entry counts, these spread over the rows that are left.
TableAccess counted_access(const ReuseCounts& counts, double rows, double lookups, double recorded);

/// The histogram of lookups that select row i with a probability of i^-exponent.
ReuseShares zipf_shares(double exponent, double rows, double lookups);

/// Rows that the batch uses at least once.
double distinct_rows(const TableAccess& access);

/// The cache that the lookups of a table go through.
struct CacheUse {
  double cache_bytes = 0;
  double row_bytes = 0;
  double streamed_bytes = 0;  ///< that each lookup moves through the cache beside its row
};

/// The share of the lookups that find their row in a cache that drops the least recently used
/// bytes and is empty before the batch. Che's approximation (Che, Tung, Wang 2002) for a finite
/// stream: a row is found if it was used within the last w lookups, with w such that w lookups
/// bring as many bytes as the cache holds. Accuracy: within 2 points of exact LRU simulations
/// (embedding_test.cc, docs/explanation/recommendation.md).
double hit_share(const TableAccess& access, const CacheUse& use);

}  // namespace tilecast
