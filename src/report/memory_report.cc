// The output of `forecast --memory-timeline`: table and JSON. memory_svg.cc draws the picture.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "report/memory_blocks.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {

std::string memory_title(const MemoryTimeline& t) {
  return fmt::format("{} on {}: memory of {}, batch {}, seq {}, {}", t.model, t.gpu_name, t.mode,
                     format_integer(t.batch), format_integer(t.seq), t.dtype);
}

namespace {

/// Whether it fits without and with the memory that the allocator's segments leave unused.
std::string fits_text(const MemoryTimeline& t) {
  if (!t.fits) return "DOES NOT FIT";
  const std::string fit = "the peak, workspaces and framework fit";
  const int64_t most = t.reserved_high_bytes + t.framework_bytes;
  return most <= t.device_bytes
             ? fit
             : fit + fmt::format(", unless fragmentation makes the allocator need up to {}",
                                 format_bytes(most));
}

std::string totals(const MemoryTimeline& t, const TableStyle& style) {
  const MemoryPoint& peak = t.points[t.peak_point];
  Lines lines;
  lines.add("peak", format_bytes(peak.parts.sum()),
            fmt::format("in {}, {} {}, {}", peak.phase, peak.segment, peak.repetition, peak.node));
  for (const NamedPart& part : kMemoryParts) {
    if (peak.parts.*part.bytes > 0)
      lines.add("  " + std::string(part.name), format_bytes(peak.parts.*part.bytes), "");
  }
  lines.add("allocated", format_bytes(t.allocated_bytes), "with cuBLAS's workspaces");
  lines.add("reserved", format_bytes(t.reserved_high_bytes),
            fmt::format("segments of the caching allocator; {} at least",
                        format_bytes(t.reserved_low_bytes)));
  lines.add("framework", format_bytes(t.framework_bytes), "CUDA context and libraries");
  lines.add("device", format_bytes(t.device_bytes), fits_text(t));
  return lines.text(style, true);
}

/// A row of the table: a block, or several that differ in their repetition only.
struct BlockRow {
  MemoryBlock block;
  int64_t last_repetition = 0;
};

/// Blocks that follow each other and show the same are one row. Where blocks change evenly, the
/// first and the last two are shown.
std::string blocks_table(const MemoryTimeline& t, const TableStyle& style) {
  TextTable table;
  table.header = {"phase", "segment", "highest", "after", "at"};
  table.right = {false, false, true, true, false};
  table.fit = {Fit::kWhole, Fit::kFront, Fit::kWhole, Fit::kWhole, Fit::kFront};
  const auto same_segment = [&](const MemoryBlock& a, const MemoryBlock& b) {
    return t.points[a.first].segment == t.points[b.first].segment &&
           t.points[a.first].phase == t.points[b.first].phase;
  };
  const auto shown = [&](const MemoryBlock& block) {
    const MemoryPoint& highest = t.points[block.highest];
    return std::array{format_bytes(highest.parts.sum()),
                      format_bytes(t.points[block.last].parts.sum()), highest.node};
  };
  std::vector<BlockRow> rows;
  for (const MemoryBlock& block : memory_blocks(t)) {
    const int64_t repetition = t.points[block.first].repetition;
    if (!rows.empty() && same_segment(rows.back().block, block) &&
        shown(rows.back().block) == shown(block)) {
      rows.back().last_repetition = repetition;
      continue;
    }
    rows.push_back({block, repetition});
  }
  const auto same = [&](size_t a, size_t b) {
    return b < rows.size() && same_segment(rows[a].block, rows[b].block);
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool inner =
        i > 1 && same(i, i - 1) && same(i, i - 2) && same(i, i + 1) && same(i, i + 2);
    if (inner) continue;
    const MemoryBlock& block = rows[i].block;
    const MemoryPoint& first = t.points[block.first];
    const std::string gap =
        i > 2 && same(i, i + 1) && !same(i, i + 2) && same(i, i - 2) && same(i, i - 3) ? "… " : "";
    std::string segment = fmt::format("{} {}", first.segment, first.repetition);
    if (rows[i].last_repetition != first.repetition)
      segment += fmt::format(" to {}", rows[i].last_repetition);
    const auto [highest, after, node] = shown(block);
    table.rows.push_back({gap + std::string(first.phase), segment, highest, after, node});
  }
  return format_text_table(table, style);
}

std::string holders_table(const MemoryTimeline& t, const TableStyle& style) {
  TextTable table;
  table.header = {"at the peak", "part", "bytes", "share", "count"};
  table.right = {false, false, true, true, true};
  table.fit = {Fit::kFront, Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWhole};
  const auto peak = static_cast<double>(t.points[t.peak_point].parts.sum());
  for (size_t i = 0; i < t.holders.size() && i < style.rows; ++i) {
    const MemoryHolder& h = t.holders[i];
    table.rows.push_back({h.name, std::string(h.part), format_bytes(h.bytes),
                          fmt::format("{:.1f} %", 100 * static_cast<double>(h.bytes) / peak),
                          format_integer(h.count)});
  }
  return format_text_table(table, style);
}

}  // namespace

std::string memory_table(const MemoryTimeline& t, const TableStyle& style) {
  std::string text = title_lines(memory_title(t), style) + "\n";
  if (t.points.empty()) return text;
  return text + totals(t, style) + "\n" + holders_table(t, style) + "\n" + blocks_table(t, style);
}

}  // namespace tilecast
