// The output of 'tilecast shard'.
//
//   26 tables (99.4 GiB) on 8 GPUs of DGX A100, batch 65,536, fp32 sums
//
//   step        5.12 ms  of the tables: the sum of
//     forward   ...
//   rank  parts  memory  lookups  forward  backward  sent

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/csv.h"
#include "base/text.h"
#include "report/parallel_report.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string totals(const ShardForecast& f, const TableStyle& style) {
  Lines lines;
  lines.add("tables", format_seconds(f.cost.total_s()),
            "of a step; no placement takes less than " + format_seconds(f.bound_s));
  lines.add("  forward", format_seconds(f.cost.forward_s), "slowest rank");
  lines.add("  backward", format_seconds(f.cost.backward_s),
            "slowest rank, with the sparse optimizer");
  lines.add("  exchange", format_seconds(f.cost.exchange_s),
            "of sums, and of their gradients (all-to-all)");
  if (f.cost.reduce_s > 0)
    lines.add("  all-reduce", format_seconds(f.cost.reduce_s), "gradients of replicated tables");
  for (const ShardBaseline& rule : f.baselines)
    lines.add(
        fmt::format("by {}", rule.name),
        rule.fits ? format_seconds(rule.cost.total_s()) : "does not fit",
        (rule.fits ? fmt::format("{:.2f} times as long; ", rule.cost.total_s() / f.cost.total_s())
                   : "") +
            "whole tables, the largest first");
  int64_t most = 0;
  for (const RankTables& rank : f.rank_tables) most = std::max(most, rank.bytes);
  lines.add("memory", format_bytes(most),
            fmt::format("of the fullest GPU, which may use {}", format_bytes(f.usable_bytes)));
  return lines.text(style);
}

/// "0-7" or "0, 3, 5"
std::string ranks_word(const std::vector<int64_t>& ranks) {
  const bool row =
      ranks.size() > 2 && ranks.back() - ranks.front() + 1 == static_cast<int64_t>(ranks.size());
  if (row) return fmt::format("{}-{}", ranks.front(), ranks.back());
  return fmt::format("{}", fmt::join(ranks, ", "));
}

std::string tables_text(const ShardForecast& f, const TableStyle& style) {
  std::vector<size_t> order(f.tables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto seconds = [&](size_t i) {
    const ShardedTable& t = f.tables[i];
    return (t.forward_s + t.backward_s) * static_cast<double>(t.ranks.size());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return seconds(a) > seconds(b); });
  TextTable table;
  table.header = {"table", "rows", "dim", "way", "memory", "forward", "backward", "ranks"};
  table.right = {false, true, true, false, true, true, true, false};
  table.fit = {Fit::kFront, Fit::kWhole, Fit::kWhole, Fit::kWhole,
               Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kEnd};
  const size_t shown = std::min(order.size(), style.rows);
  for (size_t i = 0; i < shown; ++i) {
    const ShardedTable& t = f.tables[order[i]];
    table.rows.push_back({printable(t.name), format_integer(t.rows), format_integer(t.dim),
                          std::string(t.way), format_bytes(t.bytes), format_seconds(t.forward_s),
                          format_seconds(t.backward_s), ranks_word(t.ranks)});
  }
  std::string text = shown > 0 ? format_text_table(table, style) : "";
  if (shown < order.size())
    text += fmt::format("{} more tables; --format csv lists all\n", order.size() - shown);
  return text;
}

}  // namespace

std::string shard_table(const ShardForecast& f, const TableStyle& style) {
  std::string out = title_lines(
      fmt::format("{} tables ({}) on {} GPUs of {}, batch {}, sums in {}", f.tables.size(),
                  format_bytes(f.tables_bytes), format_integer(f.ranks), f.cluster_name,
                  format_integer(f.batch), f.dtype),
      style);
  out += "\n" + totals(f, style) + "\n" + rank_tables_text(f.rank_tables, style) + "\n" +
         tables_text(f, style);
  return out + wrapped(
                   "Times of one part. FBGEMM's kernels were not measured: all times of tables are "
                   "extrapolated.",
                   style);
}

std::string shard_csv(const ShardForecast& f) {
  std::string out = "table,way,part,rank,rows,dim,reuse,bytes,forward_s,backward_s\n";
  for (const ShardedTable& t : f.tables) {
    for (size_t i = 0; i < t.ranks.size(); ++i)
      out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_cell(t.name), t.way, i, t.ranks[i],
                         t.rows, t.dim, csv_cell(t.reuse), t.bytes, t.forward_s, t.backward_s);
  }
  return out;
}

}  // namespace tilecast
