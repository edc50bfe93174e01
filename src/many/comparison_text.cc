// Table, JSON and CSV of the same request on several GPUs.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"
#include "report/options_json.h"
#include "report/serving_text.h"
#include "report/text_table.h"
#include "request/access.h"
#include "tilecast/compare.h"

namespace tilecast {
namespace {

bool warns(const ComparedGpu& row, WarningCode code) {
  return std::any_of(row.warnings.begin(), row.warnings.end(),
                     [&](const Warning& warning) { return warning.code == code; });
}

/// The row with which others are compared; nullptr: nothing could be forecast.
const ComparedGpu* fastest(const GpuComparison& c) {
  return c.gpus.empty() || c.gpus.front().totals.error ? nullptr : &c.gpus.front();
}

/// Which of the two is faster is not certain.
bool overlaps(const ComparedGpu& a, const ComparedGpu& b) {
  return *a.totals.latency_low_s <= *b.totals.latency_high_s &&
         *b.totals.latency_low_s <= *a.totals.latency_high_s;
}

struct ComparisonColumn {
  std::string header;
  bool right = true;
  std::function<std::string(const ComparedGpu&)> cell;
};

std::string ratio_text(const ComparedGpu& row, const ComparedGpu& first) {
  if (&row == &first) return "1.00";
  return fmt::format("{}{:.2f}", overlaps(row, first) ? "~" : "",
                     *row.totals.latency_s / *first.totals.latency_s);
}

/// "-6 +11 %".
std::string interval_text(const ComparedGpu& row) {
  const double time = *row.totals.latency_s;
  const auto percent = [&](double bound) { return 100 * (bound / time - 1); };
  return fmt::format("{:.0f} +{:.0f} %", std::min(percent(*row.totals.latency_low_s), -0.0),
                     std::max(percent(*row.totals.latency_high_s), 0.0));
}

/// GiB needed and of the device: "15.9/80.0"; "!52.1/32.0".
std::string memory_text(const ComparedGpu& row) {
  constexpr double kGiB = 1 << 30;
  const auto gib = [](int64_t bytes) { return format_count(static_cast<double>(bytes) / kGiB); };
  return fmt::format("{}{}/{}", row.fits() ? "" : "!", gib(*row.totals.peak_bytes),
                     gib(row.device_bytes));
}

/// Without the vendor: "h100-sxm5-80gb".
std::string short_id(const std::string& id) {
  for (const std::string_view vendor : {"nvidia-", "amd-"})
    if (id.starts_with(vendor)) return id.substr(vendor.size());
  return id;
}

/// Whether the GPUs run the model in different dtypes.
bool dtypes_differ(const GpuComparison& c, const ComparedGpu& first) {
  return std::any_of(c.gpus.begin(), c.gpus.end(), [&](const ComparedGpu& row) {
    return !row.totals.error && row.totals.dtype != first.totals.dtype;
  });
}

std::vector<ComparisonColumn> columns_of(const GpuComparison& c, const ComparedGpu& first) {
  using Row = const ComparedGpu&;
  std::vector<ComparisonColumn> columns = {{"GPU", false, [](Row r) { return short_id(r.gpu); }}};
  if (c.request.kind != RequestKind::kPass) {
    columns.push_back({"TTFT", true, [](Row r) { return format_seconds(r.ttft->seconds); }});
    columns.push_back({"TPOT", true, [](Row r) { return format_seconds(r.tpot->seconds); }});
    columns.push_back({"tok/s", true, [](Row r) {
                         return format_count(
                             r.served_tokens_per_s.value_or(r.totals.tokens_per_s.value_or(0)));
                       }});
  } else {
    columns.push_back({"latency", true, [](Row r) { return format_seconds(*r.totals.latency_s); }});
  }
  columns.push_back({"80 %", true, interval_text});
  columns.push_back({"ratio", true, [&first](Row r) {
                       return ratio_text(r, first) +
                              (warns(r, WarningCode::kExtrapolated) ? "*" : " ");
                     }});
  if (dtypes_differ(c, first))
    columns.push_back({"dtype", false, [](Row r) { return *r.totals.dtype; }});
  columns.push_back({"GiB", true, memory_text});
  return columns;
}

std::string request_text(const GpuComparison& c) {
  const Request& r = c.request;
  if (r.kind == RequestKind::kPass)
    return fmt::format("{}, batch {}", choice_name(r.mode), format_integer(r.batch)) +
           (r.seq ? fmt::format(", seq {}", format_integer(*r.seq)) : "");
  return fmt::format("prompt {}, output {}", format_integer(r.prompt), format_integer(r.output)) +
         (r.kind == RequestKind::kServe ? ", server under load"
                                        : fmt::format(", batch {}", format_integer(r.batch)));
}

/// What the columns and marks mean, and why there is no forecast for some GPUs.
std::string comparison_notes(const GpuComparison& c, const ComparedGpu* first,
                             const TableStyle& style) {
  std::string out;
  const auto note = [&](const std::string& text) {
    for (const std::string& line : wrap_text(text, static_cast<size_t>(style.width)))
      out += line + "\n";
  };
  bool unsure = false, extrapolated = false, too_large = false;
  for (const ComparedGpu& row : c.gpus) {
    if (row.totals.error) continue;
    unsure = unsure || (&row != first && overlaps(row, *first));
    extrapolated = extrapolated || warns(row, WarningCode::kExtrapolated);
    too_large = too_large || !row.fits();
  }
  const char* time = c.request.kind == RequestKind::kPass       ? "of the latency"
                     : c.request.kind == RequestKind::kGenerate ? "of the time for all tokens"
                                                                : "of the mean time of a request";
  note(
      fmt::format("80 %: interval {}; ratio: that time over the first row's; GiB: needed on one "
                  "GPU and its own",
                  time));
  if (c.request.kind == RequestKind::kServe)
    note("TTFT, TPOT: 99th percentiles of the steady state");
  if (unsure) note("~ the intervals overlap: which of the two GPUs is faster is not certain");
  if (extrapolated)
    note("* part of the time is extrapolated: the forecast of one GPU (--gpu) names the kernels");
  if (too_large) note("! does not fit: the forecast of one GPU (--gpu) says what would");
  for (const ComparedGpu& row : c.gpus)
    if (row.totals.error) note(fmt::format("{}: no forecast: {}", row.gpu, *row.totals.error));
  return out;
}

Json row_json(const ComparedGpu& row) {
  Json object = {{"gpu", row.gpu}, {"gpu_name", row.gpu_name}};
  object["device_bytes"] = row.device_bytes > 0 ? Json(row.device_bytes) : Json(nullptr);
  for (const TotalsColumn& column : totals_columns()) {
    if (column.name == "warning_codes") continue;
    std::visit(
        [&](auto field) {
          const auto& value = row.totals.*field;
          object[std::string(column.name)] = value ? Json(*value) : Json(nullptr);
        },
        column.field);
  }
  // Of a server: 99th percentiles of the steady state.
  object["ttft"] = row.ttft ? estimate_json(*row.ttft) : Json(nullptr);
  object["tpot"] = row.tpot ? estimate_json(*row.tpot) : Json(nullptr);
  object["served_tokens_per_s"] =
      row.served_tokens_per_s ? Json(*row.served_tokens_per_s) : Json(nullptr);
  object["warnings"] = warning_texts(row.warnings);
  object["warning_codes"] = warning_code_names(row.warnings);
  return object;
}

}  // namespace

std::string comparison_table(const GpuComparison& c, const TableStyle& style) {
  const ComparedGpu* first = fastest(c);
  std::string out = title_lines(
      fmt::format("{}: {}{}{}; {} GPU{}, the fastest first", c.model, request_text(c),
                  first == nullptr || dtypes_differ(c, *first) ? "" : ", " + *first->totals.dtype,
                  c.gpus_each > 1 ? fmt::format(", {} of each", format_integer(c.gpus_each)) : "",
                  c.gpus.size(), c.gpus.size() == 1 ? "" : "s"),
      style);
  if (first != nullptr) {
    const std::vector<ComparisonColumn> columns = columns_of(c, *first);
    TextTable table;
    for (const ComparisonColumn& column : columns) {
      table.header.push_back(column.header);
      table.right.push_back(column.right);
    }
    std::vector<bool> fit;
    for (const ComparedGpu& row : c.gpus) {
      if (row.totals.error) continue;
      std::vector<std::string> cells;
      for (const ComparisonColumn& column : columns) cells.push_back(column.cell(row));
      table.rows.push_back(std::move(cells));
      fit.push_back(row.fits());
    }
    table.fit = {Fit::kMiddle};
    const size_t memory = columns.size() - 1;
    table.color = [&](size_t row, size_t column) {
      return column == memory && !fit[row] ? Color::kRed : Color::kNone;
    };
    out += "\n" + format_text_table(table, style) + "\n";
  }
  return out + comparison_notes(c, first, style);
}

std::string comparison_json(const GpuComparison& c) {
  Json rows = Json::array();
  for (const ComparedGpu& row : c.gpus) rows.push_back(row_json(row));
  return Json({{"schema_version", 1},
               {"kind", "gpu_comparison"},
               {"model", c.model},
               {"gpus_each", c.gpus_each},
               {"gpus", std::move(rows)},
               {"options", options_json(c.request)}})
             .dump(1) +
         "\n";
}

std::string comparison_csv(const GpuComparison& c) {
  std::string out = "gpu";
  for (const TotalsColumn& column : totals_columns()) out += "," + std::string(column.name);
  out += "\n";
  for (const ComparedGpu& row : c.gpus) {
    out += csv_cell(row.gpu);
    for (const TotalsColumn& column : totals_columns())
      out += "," + std::visit(
                       [&](auto field) {
                         const auto& value = row.totals.*field;
                         return value ? csv_cell(fmt::format("{}", *value)) : std::string();
                       },
                       column.field);
    out += "\n";
  }
  return out;
}

}  // namespace tilecast
