#include "report/train_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/text_table.h"

namespace tilecast {
namespace {

std::string error_table(const std::string& title, const std::vector<TrainError>& errors,
                        const TableStyle& style) {
  if (errors.empty()) return "";
  TextTable table;
  table.header = {"gpu", "op", "dtype", "software", "rows", "mean %", "median %", "roofline %"};
  table.right = {false, false, false, false, true, true, true, true};
  table.fit = {Fit::kFront, Fit::kFront};
  for (const TrainError& e : errors)
    table.rows.push_back(
        {e.gpu, e.op, e.dtype, e.software, format_integer(static_cast<int64_t>(e.count)),
         fmt::format("{:.1f}", e.mape_percent), fmt::format("{:.1f}", e.median_percent),
         fmt::format("{:.1f}", e.roofline_mape_percent)});
  return title_lines(title, style) + "\n" + format_text_table(table, style, 2) + "\n";
}

}  // namespace

std::string train_table(const TrainResult& result, const TableStyle& style) {
  return error_table("Rows that laws were fitted to, by the laws alone", result.seen, style) +
         error_table("Held-out rows of GPUs that were trained on", result.held_out, style) +
         error_table("Left-out GPUs", result.left_out, style) +
         error_table("Left-out architectures", result.left_out_architecture, style);
}

std::string collective_train_table(const CollectiveTrainResult& result, const TableStyle& style) {
  TextTable table;
  table.header = {"rows of", "gpu", "collective", "rows", "mean %", "median %", "p90 %"};
  table.right = {false, false, false, true, true, true, true};
  table.fit = {Fit::kWhole, Fit::kFront, Fit::kWhole};
  for (const CollectiveError& e : result.errors)
    table.rows.push_back(
        {e.split, e.gpu, e.op.empty() ? "all of NCCL" : e.op,
         format_integer(static_cast<int64_t>(e.count)), fmt::format("{:.1f}", e.mape_percent),
         fmt::format("{:.1f}", e.median_percent), fmt::format("{:.1f}", e.p90_percent)});
  return format_text_table(table, style) + "\n";
}

std::string calibration_table(const CalibrateResult& result, const TableStyle& style) {
  TextTable table;
  table.header = {"kind", "rows", "error before %", "error after %"};
  table.right = {false, true, true, true};
  for (const CalibrateError& e : result.kinds) {
    if (e.rows == 0) {
      table.rows.push_back({e.kind, "-", "not calibrated", ""});
      continue;
    }
    table.rows.push_back({e.kind, format_integer(static_cast<int64_t>(e.rows)),
                          fmt::format("{:.1f}", e.before_percent),
                          fmt::format("{:.1f}", e.after_percent)});
  }
  return title_lines(
             fmt::format("Calibration of {}; after: each row forecast by a calibration without it",
                         result.gpu),
             style) +
         "\n" + format_text_table(table, style, 2);
}

}  // namespace tilecast
