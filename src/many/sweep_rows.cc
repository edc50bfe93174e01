#include "many/sweep_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "many/totals.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Better = SweepField::Better;

constexpr SweepField kFields[] = {
    {"cycles", "", Better::kLess, ""},
    {"latency_s", "s", Better::kLess, "time"},
    {"latency_low_s", "s", Better::kLess, ""},
    {"latency_high_s", "s", Better::kLess, ""},
    {"ttft_s", "s", Better::kLess, "ttft"},
    {"tpot_s", "s", Better::kLess, "tpot"},
    {"tokens_per_s", "1/s", Better::kMore, "throughput"},
    {"peak_bytes", "bytes", Better::kLess, "memory"},
    {"fits", "", Better::kNeither, ""},
    {"macs", "", Better::kLess, ""},
    {"pe_count", "", Better::kLess, ""},
    {"on_chip_bytes", "bytes", Better::kLess, ""},
    {"energy_j", "J", Better::kLess, "energy"},
    {"power_w", "W", Better::kLess, "power"},
    {"energy_per_token_j", "J", Better::kLess, ""},
    {"cost", "", Better::kLess, ""},
    {"converged", "", Better::kNeither, ""},
    {"error", "", Better::kNeither, ""},
};

bool is_yes_or_no(const SweepField& field) {
  return field.name == "fits" || field.name == "converged";
}

template <typename T>
std::string cell(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}
std::string cell(const std::optional<bool>& value) { return value ? *value ? "1" : "0" : ""; }

/// Numbers that only designs of accelerators have.
struct DesignCells {
  std::string cycles, pe_count, on_chip_bytes, energy_j, converged = "1";
};
DesignCells design_of(const AcceleratorForecast& f) {
  const bool converged = std::all_of(f.layers.begin(), f.layers.end(),
                                     [](const AcceleratorLayer& row) { return row.converged; });
  return {fmt::format("{:.0f}", f.cycles.value), fmt::format("{}", f.pe_count),
          fmt::format("{:.0f}", f.on_chip_bytes), f.has_energy ? fmt::format("{}", f.energy_j) : "",
          converged ? "1" : "0"};
}
DesignCells design_of(const Forecast&) { return {}; }
DesignCells design_of(const GenerationForecast&) { return {}; }

/// A message as a cell: each result is one line.
std::string one_line(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  return printable(message);
}

/// The cells of kFields.
std::vector<std::string> result_cells(const JobResult& job) {
  if (!job.result) {
    std::vector<std::string> cells(std::size(kFields));
    cells.back() = one_line(job.error);
    return cells;
  }
  const DesignCells d =
      std::visit([](const auto& forecast) { return design_of(forecast); }, *job.result);
  const ForecastTotals t = totals_of(*job.result);
  const std::string macs = t.flops ? fmt::format("{}", *t.flops / 2) : "";
  const auto end = [&](double Interval::* bound) {
    return t.latency_s ? fmt::format("{}", (*t.latency_s).*bound) : "";
  };
  return {d.cycles,
          end(&Interval::value),
          end(&Interval::low),
          end(&Interval::high),
          cell(t.ttft_s),
          cell(t.tpot_s),
          cell(t.tokens_per_s),
          cell(t.peak_bytes),
          cell(t.fits),
          macs,
          d.pe_count,
          d.on_chip_bytes,
          t.energy_j ? cell(t.energy_j) : d.energy_j,
          cell(t.power_w),
          cell(t.energy_per_token_j),
          cell(t.cost),
          d.converged,
          ""};
}

std::string json_text(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A cell as JSON has it; an infinite number is none.
std::string json_result(const SweepField& field, const std::string& text) {
  if (text.empty()) return "null";
  if (field.name == "error") return json_text(text);
  if (is_yes_or_no(field)) return text == "1" ? "true" : "false";
  const std::optional<double> number = parse_number<double>(text);
  return number && std::isfinite(*number) ? text : "null";
}

std::string json_key(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return json_text(name);
}

std::string row_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::span<const SweepField> sweep_fields() { return kFields; }

void check_sweep_output(const std::string& path) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {".json", "write JSON lines with .jsonl"},
      {".ndjson", "write JSON lines with .jsonl"},
      {".html", "'tilecast sweep' writes a page, and keeps the rows in .csv"},
      {".parquet", "tilecast.sweep(spec, out=FOLDER) of Python writes Parquet"},
      {".arrow", "tilecast.sweep(spec, out=FOLDER) of Python writes Parquet"},
      {".xlsx", "spreadsheets read .csv"},
      {".gz", "write .csv or .jsonl; a packed file cannot go on after a stop"},
      {".xz", "write .csv or .jsonl; a packed file cannot go on after a stop"}};
  for (const auto& [ending, way] : kOthers)
    if (lower_case(path).ends_with(ending))
      throw Error(ErrorKind::kInput, fmt::format("{}: a sweep's rows are CSV or JSON lines: {}",
                                                 printable(path), way));
}

SweepRows::SweepRows(const std::string& path, const SweepSpec& spec)
    : spec_(spec), json_(path.ends_with(".jsonl")), header_{"index"} {
  for (const SweepColumn& column : spec.columns()) header_.push_back(column.name);
  for (const SweepField& field : kFields) header_.emplace_back(field.name);
}

std::string SweepRows::csv_begin(size_t point) const {
  std::string line = fmt::format("{},", point);
  for (const SweepColumn& column : spec_.columns())
    line += csv_cell(spec_.text_at(column, point)) + ",";
  return line;
}

std::string SweepRows::json_begin(size_t point) const {
  std::string line = fmt::format("{{\"index\":{},", point);
  for (const SweepColumn& column : spec_.columns()) {
    const std::string text = spec_.text_at(column, point);
    line += json_key(column.name) + ":" +
            (column.values.type() == SweepType::kText ? json_text(text) : text) + ",";
  }
  return line;
}

ResumableLines::Format SweepRows::format() const {
  if (json_)
    return {.header = "",
            .count = spec_.size(),
            .before_number = "{\"index\":",
            .begin = [this](size_t point) { return json_begin(point); },
            .good_end = "\"error\":null}",
            .has_line = [this](size_t point) { return spec_.accepts(point); }};
  std::vector<std::string> cells;
  for (const std::string& name : header_) cells.push_back(csv_cell(name));
  return {.header = join(cells, ",") + "\n",
          .count = spec_.size(),
          .before_number = "",
          .begin = [this](size_t point) { return csv_begin(point); },
          .good_end = ",",
          .has_line = [this](size_t point) { return spec_.accepts(point); }};
}

std::string SweepRows::results(const JobResult& job) const {
  std::vector<std::string> cells = result_cells(job);
  if (!json_) {
    cells.back() = csv_cell(cells.back());
    return join(cells, ",");
  }
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i] = fmt::format("\"{}\":{}", kFields[i].name, json_result(kFields[i], cells[i]));
  return join(cells, ",") + "}";
}

std::vector<std::string> SweepRows::cells(const std::string& line) const {
  if (!json_) return csv_cells(line);
  const Json row = Json::parse(line, nullptr, false);
  std::vector<std::string> cells;
  if (!row.is_object()) return cells;
  for (std::string name : header_) {
    std::replace(name.begin(), name.end(), '-', '_');
    const auto found = row.find(name);
    if (found == row.end()) return {};
    cells.push_back(row_text(*found));
  }
  return cells;
}

}  // namespace tilecast
