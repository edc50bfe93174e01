#pragma once

// Lists of embedding tables, as in the config of a recommendation model and in the file that
// `tilecast shard` reads.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "embedding/traffic.h"
#include "graph/dtype.h"

namespace tilecast {

/// How the rows of a table repeat: one of the three.
struct Reuse {
  std::optional<ReuseShares> shares;  ///< as recorded with a batch of `batch`
  ReuseCounts rows;                   ///< the same, row by row; empty: not given
  int64_t batch = 0;
  std::optional<double> zipf_exponent;
};

/// The word for tables whose rows are all alike.
inline constexpr const char* kUniformReuse = "uniform";

struct EmbeddingTable {
  std::string name;
  int64_t rows = 1;
  int64_t dim = 1;
  double pooling = 1;          ///< mean number of rows of a bag
  std::optional<DType> dtype;  ///< of the stored rows; nullopt: the model's
  std::string reuse;           ///< a name in TableSet::reuse; "": all rows alike
};

struct TableSet {
  std::vector<EmbeddingTable> tables;
  std::map<std::string, Reuse> reuse;
  SparseOptimizer optimizer = SparseOptimizer::kRowwiseAdagrad;
  std::vector<std::string> warnings;  ///< assumptions

  const Reuse* reuse_of(const EmbeddingTable& table) const;
};

/// Lookups of a batch: whole, as ids are.
int64_t lookups_of(const EmbeddingTable& table, int64_t batch);

/// How a batch uses the rows of a table.
TableAccess access_of(const EmbeddingTable& table, const TableSet& set, int64_t batch);

/// Reads the fields `tables`, `embedding_dim`, `reuse` and `sparse_optimizer` of a config. Throws
/// Error{kInput} that names the field.
TableSet read_tables(const JsonObject& config);

}  // namespace tilecast
