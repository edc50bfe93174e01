#include "ops/embedding_work.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/checked.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

int64_t whole(double value) {
  constexpr double kMost = 9e18;
  if (!(value < kMost))
    throw Error(ErrorKind::kInput, "the work of the embedding tables exceeds 64 bits");
  return std::llround(value);
}

}  // namespace

Kernel tables_kernel(const TablesLaunch& launch) {
  double all_rows = 0, bags = 0, lookups = 0, elements = 0, read = 0, written = 0, gathered = 0,
         flops = 0;
  for (const TableWork& table : launch.tables) all_rows += table.rows;
  std::vector<TableTraffic> traffic;
  for (const TableWork& table : launch.tables) {
    traffic.push_back(launch.pass == EmbeddingBag::Pass::kForward ? forward_traffic(table)
                      : launch.pass == EmbeddingBag::Pass::kSort
                          ? sort_traffic(table, key_bits(all_rows))
                          : update_traffic(table, launch.optimizer));
    const TableTraffic& t = traffic.back();
    bags += table.bags;
    lookups += table.access.lookups;
    elements += table.dim;
    read += t.read_bytes;
    written += t.write_bytes;
    gathered += t.gathered_bytes;
    flops += t.flops;
  }
  const auto count = static_cast<double>(launch.tables.size());
  EmbeddingBag shape{.bags = whole(bags / count),
                     .pooling = whole(lookups / bags),
                     .dim = whole(elements / count),
                     .table_rows = whole(all_rows / count),
                     .tables = static_cast<int64_t>(launch.tables.size()),
                     .pass = launch.pass,
                     .gathered_bytes = whole(gathered)};
  const double sharing = tables_at_once(count, bags / count);
  if (gathered > 0)
    shape.hits = CacheCurve::of([&](double cache_bytes) {
      double hits = 0;
      for (const TableTraffic& t : traffic) hits += t.hit_bytes(cache_bytes / sharing);
      return hits / gathered;
    });
  return {.shape = shape,
          .dtype = launch.dtype,
          .flops = whole(flops),
          .read_bytes = whole(read),
          .write_bytes = whole(written)};
}

SizeDef reuse_size() {
  return {.name = "reuse",
          .doc =
              "rows of a table that the batch uses once, twice, 4, 8, ... times, as in 900:200:7; "
              "all other lookups go to rows that are used once",
          .type = AttributeType::kIntegers,
          .default_value = std::nullopt,
          .default_rule = "all rows alike",
          .min = 0};
}

ReuseCounts reuse_of(const GivenSizes& s) {
  const ReuseCounts& counts = s.list("reuse");
  const int64_t lookups = checked_multiply(s["bags"], s["pooling"]);
  if (const std::string why = contradiction(counts, s["table_rows"], lookups); !why.empty())
    s.fail(fmt::format("reuse {}: {}", fmt::join(counts, ":"), why));
  return counts;
}

}  // namespace tilecast
