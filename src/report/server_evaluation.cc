// Tables of forecasts against measured servers.
//
//   Servers in inferencex.csv.xz
//
//     figure          of      rows  mean %  median %  p90 %   bias  in interval %
//     TPOT            all    1,557    15.7       8.8   38.4  1.001           48.3
//
//   Median errors (forecast / measured)
//
//     software  model         gpu                    dtype  rows       TPOT %       TTFT %  ...
//     trtllm    gpt-oss-120b  nvidia-b200-sxm-180gb  mxfp4    90  14.1 (1.12)  37.0 (0.42)

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

struct MetricTitle {
  std::string_view metric, title;
};
constexpr std::array kMetricTitles = {
    MetricTitle{"tpot", "TPOT"},
    MetricTitle{"ttft", "TTFT"},
    MetricTitle{"tokens_per_s_per_gpu", "tokens/s/GPU"},
};

std::string_view title_of_metric(const std::string& metric) {
  const auto found = std::find_if(kMetricTitles.begin(), kMetricTitles.end(),
                                  [&](const MetricTitle& title) { return title.metric == metric; });
  return found == kMetricTitles.end() ? std::string_view(metric) : found->title;
}

bool is_single_group(const ServerErrors& e) { return !e.model.empty(); }

/// "all", "vllm", or a GPU.
std::string rows_of(const ServerErrors& e) {
  if (!e.software.empty()) return e.software;
  return e.gpu.empty() ? "all" : e.gpu;
}

TextTable total_rows(const ServerEvaluation& evaluation) {
  TextTable table{
      .header = {"figure", "of", "rows", "mean %", "median %", "p90 %", "bias", "in interval %"},
      .right = {false, false, true, true, true, true, true, true},
      .fit = {Fit::kFront}};
  for (const MetricTitle& title : kMetricTitles) {
    for (const ServerErrors& e : evaluation.errors) {
      if (is_single_group(e) || e.metric != title.metric) continue;
      table.rows.push_back(
          {std::string(title_of_metric(e.metric)), rows_of(e), format_integer(e.count),
           fmt::format("{:.1f}", e.mape_percent), fmt::format("{:.1f}", e.median_percent),
           fmt::format("{:.1f}", e.p90_percent), fmt::format("{:.3f}", e.bias_ratio),
           fmt::format("{:.1f}", e.coverage_percent)});
    }
  }
  return table;
}

/// "9.0 (1.05)": median error, forecast / measured.
std::string error_and_bias(const ServerErrors& e) {
  return fmt::format("{:.1f} ({:.2f})", e.median_percent, e.bias_ratio);
}

TextTable group_rows(const ServerEvaluation& evaluation) {
  TextTable table{.header = {"software", "model", "gpu", "dtype", "rows"},
                  .right = {false, false, false, false, true},
                  .fit = {Fit::kFront, Fit::kEnd, Fit::kFront}};
  for (const MetricTitle& title : kMetricTitles) {
    table.header.push_back(fmt::format("{} %", title.title));
    table.right.push_back(true);
  }
  std::map<std::array<std::string, 4>, std::map<std::string, const ServerErrors*>> groups;
  for (const ServerErrors& e : evaluation.errors)
    if (is_single_group(e)) groups[{e.software, e.model, e.gpu, e.dtype}][e.metric] = &e;
  for (const auto& [names, metrics] : groups) {
    int64_t rows = 0;
    for (const auto& [metric, errors] : metrics) rows = std::max(rows, errors->count);
    std::vector<std::string> cells = {names[0], names[1], names[2], names[3], format_integer(rows)};
    for (const MetricTitle& title : kMetricTitles) {
      const auto found = metrics.find(std::string(title.metric));
      cells.push_back(found == metrics.end() ? "-" : error_and_bias(*found->second));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::string server_evaluation_table(const ServerEvaluation& evaluation, const TableStyle& style) {
  return title_lines("Servers in " + evaluation.file, style) + "\n" +
         format_text_table(total_rows(evaluation), style, 2) + "\n" +
         title_lines("Median errors, with forecast / measured in brackets", style) + "\n" +
         format_text_table(group_rows(evaluation), style, 2) + "\n" +
         unmatched_lines(evaluation.unmatched, style);
}

}  // namespace tilecast
