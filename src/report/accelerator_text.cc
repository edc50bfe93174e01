// Forecasts on accelerators as table, JSON and CSV:
//
// resnet-50 on Gemmini: batch 1, int8, int32 sums
//   cycles  21.4 M   21.4 ms at 1.00 GHz

#include <fmt/format.h>

#include <algorithm>

#include "base/csv.h"
#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/learn.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string cycles_text(double cycles) { return format_si(cycles, ""); }

/// The busiest objects: "mesh 83 %, load_unit 40 %".
std::string use_text(const AcceleratorLayer& layer, size_t most) {
  std::vector<ObjectUse> use = layer.use;
  std::stable_sort(use.begin(), use.end(),
                   [](const ObjectUse& a, const ObjectUse& b) { return a.ratio > b.ratio; });
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(most, use.size()); ++i)
    parts.push_back(fmt::format("{} {:.0f} %", use[i].object, 100 * use[i].ratio));
  return join(parts, ", ");
}

/// Operators that a store applies.
int64_t fused_count(const AcceleratorForecast& forecast) {
  int64_t count = 0;
  for (const AcceleratorLayer& layer : forecast.layers)
    if (layer.where == "store") count += layer.count;
  return count;
}

/// The rows that take time, the longest first.
std::vector<const AcceleratorLayer*> by_time(const AcceleratorForecast& forecast) {
  std::vector<const AcceleratorLayer*> rows;
  for (const AcceleratorLayer& layer : forecast.layers)
    if (layer.where != "store") rows.push_back(&layer);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->cycles * static_cast<double>(a->count) > b->cycles * static_cast<double>(b->count);
  });
  return rows;
}

}  // namespace

std::string accelerator_table(const AcceleratorForecast& f, const TableStyle& style) {
  std::string text =
      title_lines(fmt::format("{} on {}: batch {}, {}{}{} with {} sums, dataflow {}", f.model,
                              f.accelerator_name, f.batch, f.input, f.input.empty() ? "" : ", ",
                              f.operand_dtype, f.accumulator_dtype, f.dataflow),
                  style);
  Lines lines;
  lines.add("cycles", cycles_text(f.cycles),
            fmt::format("{} at {}", format_seconds(f.latency_s()), format_si(f.clock_hz, "Hz")));
  if (f.cycles.high > f.cycles.low)
    lines.add("  interval",
              fmt::format("{} to {}", cycles_text(f.cycles.low), cycles_text(f.cycles.high)),
              "of layers without a fixed point");
  if (f.host_cycles > 0)
    lines.add("  host", cycles_text(f.host_cycles), "operators that the accelerator does not run");
  lines.add(
      "work", format_si(static_cast<double>(f.macs - f.host_macs), "MAC"),
      fmt::format("{:.0f} % of {} units", 100 * f.utilization_ratio(), format_integer(f.pe_count)));
  if (f.host_macs > 0)
    lines.add("  host", format_si(static_cast<double>(f.host_macs), "MAC"), "not on the units");
  if (const int64_t fused = fused_count(f); fused > 0)
    lines.add("fused", format_integer(fused), "operators in the stores of the layers before them");
  lines.add("instructions", format_si(f.instructions, ""),
            static_cast<double>(f.evaluated) >= f.instructions
                ? "all were run"
                : fmt::format("{} were run, the rest follows from fixed points",
                              format_integer(f.evaluated)));
  lines.add("on-chip", format_bytes(static_cast<int64_t>(f.on_chip_bytes)), "memories");
  if (f.has_energy) lines.add("energy", fmt::format("{:.3g} J", f.energy_j), "");
  text += "\n" + lines.text(style) + "\n";
  TextTable table{.header = {"layer", "share", "cycles", "count", "bound", "sizes", "busy"},
                  .right = {false, true, true, true, false, false, false},
                  .fit = {Fit::kFront, Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWhole,
                          Fit::kEnd, Fit::kEnd}};
  const std::vector<const AcceleratorLayer*> rows = by_time(f);
  for (size_t i = 0; i < std::min(rows.size(), style.rows); ++i) {
    const AcceleratorLayer& layer = *rows[i];
    const double share = layer.cycles * static_cast<double>(layer.count) / f.cycles;
    table.rows.push_back({layer.name, fmt::format("{:.1f} %", 100 * share),
                          cycles_text(layer.cycles) + (layer.converged ? "" : "~"),
                          format_integer(layer.count), layer.bound, layer.sizes,
                          use_text(layer, 3)});
  }
  if (style.rows > 0) text += format_text_table(table, style);
  if (rows.size() > style.rows)
    text += fmt::format("{} more kinds of layers\n", rows.size() - style.rows);
  return text;
}

std::string accelerator_evaluation_table(const std::vector<AcceleratorEvaluation>& files,
                                         const TableStyle& style) {
  TextTable table{.header = {"file", "accelerator", "rows", "left out", "MAPE", "median", "p90",
                             "bias", "rank", "held-out MAPE", "held-out median"},
                  .right = {false, false, true, true, true, true, true, true, true, true, true},
                  .fit = {Fit::kFront}};
  for (const AcceleratorEvaluation& file : files)
    table.rows.push_back(
        {file.file, file.accelerator, format_integer(file.rows), format_integer(file.left_out),
         fmt::format("{:.1f}", file.mape_percent), fmt::format("{:.1f}", file.median_percent),
         fmt::format("{:.1f}", file.p90_percent), fmt::format("{:.2f}", file.bias_ratio),
         file.rank_correlation ? fmt::format("{:.3f}", *file.rank_correlation) : "",
         fmt::format("{:.1f}", file.held_out_mape_percent),
         fmt::format("{:.1f}", file.held_out_median_percent)});
  return format_text_table(table, style);
}

}  // namespace tilecast
