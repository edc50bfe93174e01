#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

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
  table.fit = {Fit::kMiddle};
  for (const auto& [key, value] : means)
    table.rows.push_back({key[0], key[1], key[2], key[3], format_integer(value.second),
                          percent(value.first / value.second)});
  return table;
}

}  // namespace

std::string evaluation_table(const Evaluation& evaluation, const TableStyle& style) {
  std::string out;
  if (!evaluation.rows.empty()) {
    TextTable table;
    table.header = {"gpu",    "op",       "dtype", "software", "rows",
                    "mean %", "median %", "p90 %", "bias",     "in interval %"};
    table.right = {false, false, false, false, true, true, true, true, true, true};
    table.fit = {Fit::kMiddle, Fit::kMiddle};
    for (const EvaluationRow& r : evaluation.rows)
      table.rows.push_back({r.gpu, r.op, r.dtype, r.software, format_integer(r.count),
                            percent(r.mape_percent), percent(r.median_percent),
                            percent(r.p90_percent), fmt::format("{:.3f}", r.bias_ratio),
                            percent(r.coverage_percent)});
    out += "Kernels\n\n" + format_text_table(table, style, 2) + "\n";
  }
  if (!evaluation.models.empty()) {
    TextTable table;
    table.header = {"gpu",   "model",  "mode",     "seq",      "batch",
                    "dtype", "option", "measured", "forecast", "error %"};
    table.right = {false, false, false, true, true, false, false, true, true, true};
    table.fit = {Fit::kMiddle, Fit::kMiddle};
    for (const EvaluationModel& m : evaluation.models) {
      const double signed_error = 100 * (m.forecast_s / m.measured_s - 1);
      table.rows.push_back({m.gpu, m.model, m.mode, format_integer(m.seq), format_integer(m.batch),
                            m.dtype, m.option, format_seconds(m.measured_s),
                            format_seconds(m.forecast_s), fmt::format("{:+.1f}", signed_error)});
    }
    out += "Whole models\n\n" + format_text_table(table, style, 2) + "\n";
    out += "Mean over models\n\n" + format_text_table(model_means(evaluation), style, 2) + "\n";
  }
  if (!evaluation.unmatched.empty()) {
    out += fmt::format("Not evaluated ({})\n\n",
                       format_integer(static_cast<int64_t>(evaluation.unmatched.size())));
    const auto width = static_cast<size_t>(style.width);
    for (const std::string& item : evaluation.unmatched) {
      std::string indent = "  ";
      for (const std::string& line : wrap_text(item, width - 4)) {
        out += indent + line + "\n";
        indent = "    ";
      }
    }
  }
  return out;
}

}  // namespace tilecast
