// A trace of a profiler:
//
//   span    7.59 ms   busy 1.23 ms, idle 84 %
//   idle    6.30 ms   host: it launches too late
//
//   operator     sizes                  calls     each  should take        time
//   aten::addmm  [788, 768] [768, 768]     48  8.31 us  5.9 to 7.1 us  33 %  slow

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/text_table.h"
#include "tilecast/profile.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string percent_of(double share) {
  constexpr double kOne = 0.0995;
  return fmt::format("{:.{}f} %", 100 * share, share < kOne ? 1 : 0);
}

/// The ends of an interval, where it has any: measured times have none.
std::string ends_text(const Interval& seconds, std::string_view separator) {
  return seconds.low < seconds.high ? span_text(seconds) + std::string(separator) : "";
}

std::string why_text(const std::string& why) {
  if (why == "host") return "the host launches too late";
  if (why == "synchronization") return "the host waits for the GPU, then launches";
  if (why == "between kernels") return "gaps between kernels that were launched in time";
  return "launched before the trace began, or not stated";
}

std::string short_operator_name(const std::string& name) {
  constexpr std::string_view kAten = "aten::";
  return name.starts_with(kAten) ? name.substr(kAten.size()) : name;
}

std::string should_take(const TracedOperator& op) {
  return op.forecast ? span_text(*op.forecast) : "-";
}

/// All operators, the one that takes longest first.
std::string operators_table(const TraceReport& report, const TableStyle& style) {
  TextTable table{.header = {"operator", "sizes", "calls", "each", "should take", "share"},
                  .right = {false, false, true, true, true, true},
                  .fit = {Fit::kEnd, Fit::kEnd},
                  .min_widths = {8, 12}};
  if (report.carried) table.header.insert(table.header.begin() + 5, "there");
  if (report.carried) table.right.insert(table.right.begin() + 5, true);
  const size_t shown = std::min(style.rows, report.operators.size());
  for (size_t i = 0; i < shown; ++i) {
    const TracedOperator& op = report.operators[i];
    std::vector<std::string> row = {short_operator_name(op.name),
                                    op.sizes + (op.dtype.empty() ? "" : " " + op.dtype),
                                    fmt::format("{:.0f}", op.calls),
                                    op.kernels > 0 ? format_seconds(op.measured_s) : "-",
                                    should_take(op),
                                    percent_of(op.share)};
    if (report.carried)
      row.insert(row.begin() + 5,
                 op.carried ? format_seconds(op.carried->value) : std::string("-"));
    table.rows.push_back(std::move(row));
  }
  table.color = [&report](size_t row, size_t column) {
    constexpr size_t kEach = 3;
    return column == kEach && report.operators[row].slow ? Color::kRed : Color::kNone;
  };
  std::string out = format_text_table(in_one_line(std::move(table), style, 2, {"calls"}), style, 2);
  if (report.operators.size() > shown)
    out += fmt::format("  {} more\n", report.operators.size() - shown);
  return out;
}

/// What is slower than the upper end of its interval, the largest loss first.
std::string slow_lines(const TraceReport& report, const TableStyle& style) {
  std::vector<const TracedOperator*> slow;
  for (const TracedOperator& op : report.operators)
    if (op.slow) slow.push_back(&op);
  if (slow.empty()) return "";
  std::stable_sort(slow.begin(), slow.end(), [](const TracedOperator* a, const TracedOperator* b) {
    return a->gain_s > b->gain_s;
  });
  TextTable table{.header = {"slower than it should be", "each", "ratio", "would save", "why"},
                  .right = {false, true, true, true, false},
                  .fit = {Fit::kEnd, Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWrap}};
  constexpr size_t kMostSlow = 10;
  for (size_t i = 0; i < std::min(kMostSlow, slow.size()); ++i) {
    const TracedOperator& op = *slow[i];
    table.rows.push_back({short_operator_name(op.name) + " " + op.sizes,
                          format_seconds(op.measured_s), fmt::format("{:.1f} x", op.ratio),
                          format_seconds(op.gain_s), op.reason});
  }
  std::string out = "\n" + format_text_table(table, style, 2);
  if (slow.size() > kMostSlow) out += fmt::format("  {} more\n", slow.size() - kMostSlow);
  return out;
}

void add_step_lines(Lines& lines, const TraceReport& report) {
  if (report.steps.empty()) return;
  lines.add("step", format_seconds(report.step_s),
            report.steps.size() == 1
                ? "of the host, one step"
                : fmt::format("median of {} steps of the host, from the shortest to the longest "
                              "{} more",
                              report.steps.size(), percent_of(report.step_spread)));
}

void add_idle_lines(Lines& lines, const TraceReport& report) {
  for (const TracedIdle& idle : report.idle)
    lines.add("idle", format_seconds(idle.seconds),
              fmt::format("{} of the span, {}: {}", percent_of(idle.share),
                          counted(idle.gaps, "gap"), why_text(idle.why)));
  if (report.exposed_communication_s > 0)
    lines.add("communication", format_seconds(report.exposed_communication_s),
              "runs alone: nothing hides it");
}

/// What was changed beside the GPU.
void add_change_lines(Lines& lines, const CarriedTrace& carried) {
  constexpr double kShown = 0.0005;  // less is 0.0 %
  const std::string kept =
      carried.kept_share >= kShown
          ? fmt::format("; operators with {} of the time do not say how they change: kept",
                        percent_of(carried.kept_share))
          : "";
  if (carried.batch > 0)
    lines.add("batch there", std::to_string(carried.batch),
              fmt::format("in place of {}{}", carried.traced_batch, kept));
  if (!carried.dtype.empty())
    lines.add("dtype there", carried.dtype,
              fmt::format("in place of {}{}", carried.traced_dtype, carried.batch > 0 ? "" : kept));
}

void add_carried_lines(Lines& lines, const TraceReport& report) {
  const CarriedTrace& carried = *report.carried;
  add_change_lines(lines, carried);
  const std::string gpu = carried.gpu_name.empty() ? "the other GPU" : carried.gpu_name;
  lines.add("kernels there", format_seconds(carried.kernels_s.value),
            fmt::format("{}on {}", ends_text(carried.kernels_s, ", "), gpu));
  lines.add("span there", format_seconds(carried.span_s.value),
            fmt::format("{}host: {}", ends_text(carried.span_s, "; "), carried.host));
}

/// Measured, and beside it what Tilecast's models say.
void add_memory_lines(Lines& lines, const TracedMemoryUse& memory) {
  lines.add(
      "memory", format_bytes(memory.peak_bytes),
      memory.of_host
          ? std::string("most that tensors had of the host's, since the trace began")
          : fmt::format("most that tensors had; PyTorch's allocator held up to {}, Tilecast's "
                        "model of it {} for the same requests",
                        format_bytes(memory.reserved_bytes),
                        format_bytes(memory.model_reserved_bytes)));
  if (memory.held_bytes > 0)
    lines.add("held before", format_bytes(memory.held_bytes),
              memory.model_weights_bytes > 0
                  ? fmt::format("when the trace begins; weights of its operators: {}",
                                format_bytes(memory.model_weights_bytes))
                  : std::string("when the trace begins"));
  lines.add("results", format_bytes(memory.results_bytes),
            memory.known_results_bytes > 0
                ? fmt::format("taken in the trace, in use at the peak; {} of known operators, by "
                              "their sizes {}",
                              format_bytes(memory.known_results_bytes),
                              format_bytes(memory.model_results_bytes))
                : std::string("taken in the trace, in use at the peak"));
  if (memory.workspace_bytes > 0)
    lines.add("workspace", format_bytes(memory.workspace_bytes),
              "most that one operator took and gave back");
}

/// Of operators that were recorded without times of a GPU.
void add_recorded_lines(Lines& lines, const TraceReport& report) {
  double calls = 0;
  for (const TracedOperator& op : report.operators) calls += op.calls;
  lines.add("operators", fmt::format("{:.0f}", calls), "calls whose work is known; not measured");
  if (report.should_take)
    lines.add("should take", format_seconds(report.should_take->value),
              fmt::format("{}sum of their kernels", ends_text(*report.should_take, ", ")));
  if (!report.carried) return;
  add_change_lines(lines, *report.carried);
  lines.add(
      "kernels there", format_seconds(report.carried->kernels_s.value),
      fmt::format("{}on {}", ends_text(report.carried->kernels_s, ", "), report.carried->gpu_name));
}

std::string totals(const TraceReport& report, const TableStyle& style) {
  Lines lines;
  if (report.kernels == 0 && !report.operators.empty()) {
    add_recorded_lines(lines, report);
    if (report.memory) add_memory_lines(lines, *report.memory);
    return lines.text(style);
  }
  lines.add("span", format_seconds(report.span_s),
            fmt::format("busy {}, {} in {}", format_seconds(report.busy_s),
                        counted(report.kernels, "kernel"), counted(report.streams, "stream")));
  add_step_lines(lines, report);
  add_idle_lines(lines, report);
  if (report.gain_s > 0)
    lines.add("would save", format_seconds(report.gain_s),
              fmt::format("{} of the kernels, if what is slow took its forecast",
                          percent_of(report.gain_s / std::max(report.kernels_s, 1e-12))));
  lines.add("known", percent_of(report.forecast_share),
            fmt::format("of the kernels' {} have a forecast; {} are measured only",
                        format_seconds(report.kernels_s), percent_of(report.unknown_share)));
  if (report.memory) add_memory_lines(lines, *report.memory);
  if (report.carried) add_carried_lines(lines, report);
  return lines.text(style);
}

}  // namespace

std::string trace_table(const TraceReport& report, const TableStyle& style) {
  const std::string gpu = report.gpu_name.empty()
                              ? report.traced_gpu.empty() ? "no GPU" : report.traced_gpu
                              : report.gpu_name;
  std::string out = title_lines(fmt::format("{} on {}", report.file, gpu), style);
  if (!report.assumptions.empty()) out += assumes_lines(report.assumptions, style);
  out += "\n" + totals(report, style);
  if (report.operators.empty()) return out;
  return out + "\n" + operators_table(report, style) + slow_lines(report, style);
}

}  // namespace tilecast
