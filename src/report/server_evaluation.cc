// Tables of forecasts against measured servers.
//
//   Servers in inferencex.csv.xz
//
//     figure  of    rows  mean %  median %  p90 %   bias  covered %
//     TPOT    all  1,557    15.8       8.8   32.9  1.012       48.0
//
//   Median error % (forecast / measured): vllm on nvidia-b200-sxm-180gb
//
//     model         dtype  rows         TPOT         TTFT    tok/s/GPU
//     gpt-oss-120b  mxfp4    66  13.1 (1.15)  51.9 (0.50)  11.1 (0.87)

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "report/text_table.h"
#include "tilecast/learn.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

struct MetricTitle {
  std::string_view metric, title;
};
constexpr std::string_view kAtMeasuredRate = "energy_per_token_at_measured_rate";
constexpr std::array kMetricTitles = {
    MetricTitle{"tpot", "TPOT"},
    MetricTitle{"itl", "ITL"},
    MetricTitle{"ttft", "TTFT"},
    MetricTitle{"tokens_per_s_per_gpu", "tok/s/GPU"},
    MetricTitle{"power", "W"},
    MetricTitle{"energy_per_token", "J/tok"},
    MetricTitle{kAtMeasuredRate, "J/tok*"},
};

bool is_single_group(const ServerErrors& e) { return !e.model.empty(); }

/// "all", "vllm", or a GPU.
std::string rows_of(const ServerErrors& e) {
  if (!e.software.empty()) return e.software;
  return e.gpu.empty() ? "all" : e.gpu;
}

TextTable total_rows(const ServerEvaluation& evaluation) {
  TextTable table{
      .header = {"figure", "of", "rows", "mean %", "median %", "p90 %", "bias", "covered %"},
      .right = {false, false, true, true, true, true, true, true},
      .fit = {Fit::kFront}};
  for (const MetricTitle& title : kMetricTitles) {
    for (const ServerErrors& e : evaluation.errors) {
      if (is_single_group(e) || e.metric != title.metric) continue;
      table.rows.push_back(
          {std::string(title.title), rows_of(e), format_integer(e.count),
           fmt::format("{:.1f}", e.mape_percent), fmt::format("{:.1f}", e.median_percent),
           fmt::format("{:.1f}", e.p90_percent), fmt::format("{:.3f}", e.bias_ratio),
           fmt::format("{:.1f}", e.coverage_percent)});
    }
  }
  return table;
}

/// What the columns mean, and how far the ranks of all rows agree.
std::string notes_of(const ServerEvaluation& evaluation, const TableStyle& style) {
  std::string notes =
      "covered: share of rows inside the 80 % interval; ITL: time between two tokens of a stream";
  std::string ranks;
  for (const MetricTitle& title : kMetricTitles) {
    for (const ServerErrors& e : evaluation.errors) {
      if (e.metric != title.metric || rows_of(e) != "all" || is_single_group(e)) continue;
      if (e.metric == kAtMeasuredRate)
        notes += "; J/tok*: the forecast watts over the measured tokens a second";
      if (e.kendall_tau)
        ranks += fmt::format("{}{} {:.2f}", ranks.empty() ? "" : ", ", title.title, *e.kendall_tau);
    }
  }
  std::string text = wrapped(notes, style);
  if (!ranks.empty()) text += wrapped("Kendall's tau of the rows' ranks: " + ranks, style);
  return text;
}

/// "9.0 (1.05)": median error, forecast / measured.
std::string error_and_bias(const ServerErrors& e) {
  return fmt::format("{:.1f} ({:.2f})", e.median_percent, e.bias_ratio);
}

/// Errors of one model, GPU and dtype by metric.
using GroupErrors = std::map<std::string, const ServerErrors*>;
/// Of one software and GPU, by model and dtype.
using PlaceErrors = std::map<std::array<std::string, 2>, GroupErrors>;

/// The figures that a group of the table has.
std::vector<MetricTitle> titles_of(const PlaceErrors& groups) {
  std::vector<MetricTitle> titles;
  for (const MetricTitle& title : kMetricTitles) {
    if (std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
          return group.second.contains(std::string(title.metric));
        }))
      titles.push_back(title);
  }
  return titles;
}

TextTable group_rows(const PlaceErrors& groups) {
  TextTable table{
      .header = {"model", "dtype", "rows"}, .right = {false, false, true}, .fit = {Fit::kEnd}};
  const std::vector<MetricTitle> titles = titles_of(groups);
  for (const MetricTitle& title : titles) {
    table.header.emplace_back(title.title);
    table.right.push_back(true);
  }
  for (const auto& [names, metrics] : groups) {
    int64_t rows = 0;
    for (const auto& [metric, errors] : metrics) rows = std::max(rows, errors->count);
    std::vector<std::string> cells = {without_owner(names[0]), names[1], format_integer(rows)};
    for (const MetricTitle& title : titles) {
      const auto found = metrics.find(std::string(title.metric));
      cells.push_back(found == metrics.end() ? "-" : error_and_bias(*found->second));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::string server_evaluation_table(const ServerEvaluation& evaluation, const TableStyle& style) {
  std::map<std::array<std::string, 2>, PlaceErrors> groups;
  for (const ServerErrors& e : evaluation.errors)
    if (is_single_group(e)) groups[{e.software, e.gpu}][{e.model, e.dtype}][e.metric] = &e;
  std::string out = title_lines("Servers in " + evaluation.file, style) + "\n" +
                    format_text_table(total_rows(evaluation), style, 2) + "\n" +
                    notes_of(evaluation, style) + "\n";
  for (const auto& [place, errors] : groups)
    out += title_lines(
               fmt::format("Median error % (forecast / measured): {} on {}", place[0], place[1]),
               style) +
           "\n" +
           format_text_table(in_one_line(group_rows(errors), style, 2, {"J/tok*", "J/tok"}), style,
                             2) +
           "\n";
  return out + unmatched_lines(evaluation.unmatched, style);
}

}  // namespace tilecast
