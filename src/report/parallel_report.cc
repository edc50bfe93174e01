#include "report/parallel_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace tilecast {
namespace {

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "";
}

}  // namespace

void add_parallel(Lines& lines, const Forecast& f) {
  const ParallelForecast& p = *f.parallel;
  lines.add(
      "ranks", format_integer(p.ranks),
      p.cluster_name.empty()
          ? "one GPU"
          : fmt::format("{} of {}{}", counted(p.nodes, "node"), p.cluster_name,
                        p.nodes > 1 ? fmt::format(", {} GPUs of each", p.ranks / p.nodes) : ""));
  lines.add("  batch", format_integer(f.batch),
            fmt::format("{} of {} on each data-parallel rank",
                        counted(p.microbatches, "micro-batch", "micro-batches"),
                        format_integer(p.micro_batch_size)));
  lines.add("  communication", format_seconds(p.communication_s),
            p.stages.size() > 1
                ? fmt::format("all parts are of stage {}, which computes longest", p.slowest_stage)
                : "");
  lines.add("    exposed", format_seconds(p.exposed_communication_s),
            percent(p.exposed_communication_s, f.latency_s));
  lines.add("  bubble", format_seconds(p.bubble_s), percent(p.bubble_s, f.latency_s));
  if (p.interval_parts && f.latency_s > 0)
    lines.add("  mean run",
              fmt::format("{} to {}", format_seconds(p.interval_parts->model_low_s),
                          format_seconds(p.interval_parts->model_high_s)),
              fmt::format("single runs differ by {:.1f} % from node to node and day to day",
                          100 * p.interval_parts->machine_spread_ratio));
  if (p.gradient_copies_s > 0)
    lines.add("  gradient copies", format_seconds(p.gradient_copies_s),
              "into the buckets that are reduced, and back");
  if (p.slowed_s > 0)
    lines.add("  slowed", format_seconds(p.slowed_s),
              "the backward pass, by reductions that occupy multiprocessors");
}

std::string stages_table(const ParallelForecast& p, const TableStyle& style) {
  TextTable table;
  table.header = {"stage",   "layers",  "forward", "backward",
                  "compute", "exposed", "bubble",  "memory"};
  table.right = {true, true, true, true, true, true, true, true};
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < p.stages.size(); ++i) {
    if (p.stages.size() > kShown && i == kShown / 2) i = p.stages.size() - kShown / 2;
    const StageForecast& s = p.stages[i];
    table.rows.push_back({format_integer(s.stage), format_integer(s.layers),
                          format_seconds(s.forward_s), format_seconds(s.backward_s),
                          format_seconds(s.compute_s), format_seconds(s.exposed_communication_s),
                          format_seconds(s.bubble_s), format_bytes(s.memory.peak_bytes)});
  }
  std::string text = format_text_table(table, style);
  if (p.stages.size() > kShown) text += fmt::format("{} more stages\n", p.stages.size() - kShown);
  return text;
}

std::string step_parts_text(const std::vector<StepPart>& parts, const TableStyle& style) {
  TextTable table;
  table.header = {"part of the step", "on", "time", "from", "to"};
  table.right = {false, false, true, true, true};
  for (const StepPart& part : parts)
    table.rows.push_back({part.name, part.runs_on, format_seconds(part.seconds),
                          format_seconds(part.start_s), format_seconds(part.end_s)});
  return format_text_table(table, style);
}

std::string rank_tables_text(const std::vector<RankTables>& ranks, const TableStyle& style) {
  TextTable table;
  table.header = {"rank", "parts", "memory", "lookups", "forward", "backward", "sent"};
  table.right.assign(table.header.size(), true);
  constexpr size_t kShown = 16;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > kShown && i == kShown / 2) i = ranks.size() - kShown / 2;
    const RankTables& r = ranks[i];
    table.rows.push_back({format_integer(r.rank), format_integer(r.parts), format_bytes(r.bytes),
                          format_integer(std::llround(r.lookups)), format_seconds(r.forward_s),
                          format_seconds(r.backward_s), format_bytes(std::llround(r.sent_bytes))});
  }
  std::string text = format_text_table(table, style);
  if (ranks.size() > kShown) text += fmt::format("{} more ranks\n", ranks.size() - kShown);
  return text;
}

}  // namespace tilecast
