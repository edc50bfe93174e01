#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/quantile.h"
#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string percent(double value) { return fmt::format("{:.1f}", value); }

/// Mean errors by GPU, mode and option.
TextTable model_means(const Evaluation& evaluation) {
  std::map<std::array<std::string, 4>, std::pair<double, int>> means;
  for (const EvaluationModel& m : evaluation.models) {
    auto& [sum, count] = means[{m.gpu, m.mode, m.dtype, m.option}];
    sum += m.error_percent;
    ++count;
  }
  TextTable table;
  table.header = {"gpu", "mode", "dtype", "option", "models", "mean error %"};
  table.right = {false, false, false, false, true, true};
  table.fit = {Fit::kFront};
  for (const auto& [key, value] : means)
    table.rows.push_back({key[0], key[1], key[2], key[3], format_integer(value.second),
                          percent(value.first / value.second)});
  return table;
}

/// Errors of peaks of memory by GPU and option.
TextTable peak_errors(const Evaluation& evaluation) {
  std::map<std::array<std::string, 2>, std::vector<double>> errors;
  for (const EvaluationPeak& p : evaluation.peaks)
    errors[{p.gpu, p.option}].push_back(p.error_percent);
  TextTable table;
  table.header = {"gpu", "option", "set-ups", "median error %", "p90 %", "worst %"};
  table.right = {false, false, true, true, true, true};
  table.fit = {Fit::kFront};
  constexpr double kMedian = 0.5, kMost = 0.9;
  for (const auto& [key, values] : errors)
    table.rows.push_back({key[0], key[1], format_integer(static_cast<int64_t>(values.size())),
                          percent(quantile(values, kMedian)), percent(quantile(values, kMost)),
                          percent(*std::max_element(values.begin(), values.end()))});
  return table;
}

/// A table for each GPU, in the order of the rows.
template <typename Row>
std::string tables_of_gpus(const std::vector<Row>& rows, const std::string& title,
                           const TextTable& empty, const TableStyle& style,
                           std::vector<std::string> (*cells)(const Row&)) {
  std::vector<std::pair<std::string, TextTable>> tables;
  for (const Row& row : rows) {
    auto known = std::find_if(tables.begin(), tables.end(),
                              [&](const auto& table) { return table.first == row.gpu; });
    if (known == tables.end()) known = tables.insert(tables.end(), {row.gpu, empty});
    known->second.rows.push_back(cells(row));
  }
  std::string out;
  for (const auto& [gpu, table] : tables)
    out += fmt::format("{} on {}\n\n{}\n", title, gpu, format_text_table(table, style, 2));
  return out;
}

std::vector<std::string> kernel_cells(const EvaluationRow& r) {
  return {r.op,
          r.dtype,
          r.software,
          format_integer(r.count),
          percent(r.mape_percent),
          percent(r.median_percent),
          percent(r.p90_percent),
          fmt::format("{:.3f}", r.bias_ratio),
          percent(r.coverage_percent)};
}

std::vector<std::string> model_cells(const EvaluationModel& m) {
  return {m.model,
          m.mode,
          format_integer(m.seq),
          format_integer(m.batch),
          m.dtype,
          m.option,
          format_seconds(m.measured_s),
          format_seconds(m.forecast_s),
          fmt::format("{:+.1f}", 100 * (m.forecast_s / m.measured_s - 1))};
}

}  // namespace

std::string evaluation_table(const Evaluation& evaluation, const TableStyle& style) {
  std::string out;
  const TextTable kernels{.header = {"op", "dtype", "software", "rows", "mean %", "median %",
                                     "p90 %", "bias", "in interval %"},
                          .right = {false, false, false, true, true, true, true, true, true},
                          .fit = {Fit::kEnd}};
  const TextTable models{.header = {"model", "mode", "seq", "batch", "dtype", "option", "measured",
                                    "forecast", "error %"},
                         .right = {false, false, true, true, false, false, true, true, true},
                         .fit = {Fit::kFront},
                         .min_widths = {12}};
  out += tables_of_gpus(evaluation.rows, "Kernels", kernels, style, kernel_cells);
  out += tables_of_gpus(evaluation.models, "Whole models", models, style, model_cells);
  if (!evaluation.models.empty())
    out += "Mean over models\n\n" + format_text_table(model_means(evaluation), style, 2) + "\n";
  if (!evaluation.peaks.empty())
    out += "Peaks of memory\n\n" + format_text_table(peak_errors(evaluation), style, 2) + "\n";
  return out + unmatched_lines(evaluation.unmatched, style);
}

}  // namespace tilecast
