#include "measurements/served_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kMostSeconds = 1e6;
constexpr double kMostTokens = 1e9;  // of a request, and of a second
constexpr double kMostWatts = 1e9;

bool has_all(const CsvTable& table, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](std::string_view name) { return table.column(name).has_value(); });
}

bool is_kept_full(const CsvTable& table) {
  return has_all(table, {"gpu", "gpus", "model", "software", "dtype", "tp", "dp", "ep",
                         "max_num_seqs", "output_mean", "itl_median_s"});
}

/// The cells of a row by the names of their columns.
class ServedCells {
 public:
  ServedCells(const CsvTable& table, size_t row) : table_(table), row_(row) {}

  /// "" where the table has no such column.
  std::string text(std::string_view name) const {
    const auto column = table_.column(name);
    return column ? std::string(trim(table_.rows[row_][*column])) : std::string();
  }

  std::string name(std::string_view column) const {
    std::string found = printable(text(column));
    if (found.empty()) fail(column, "expected a name, found nothing");
    return found;
  }

  std::optional<double> positive(std::string_view name, double most) const {
    if (text(name).empty()) return std::nullopt;
    const double value = table_.number(row_, table_.require_column(name));
    if (!std::isfinite(value) || value <= 0 || value > most)
      fail(name, fmt::format("expected a number above 0 and at most {:g}, found '{}'", most,
                             shown_name(text(name))));
    return value;
  }

  std::optional<int64_t> whole(std::string_view name) const {
    const std::optional<double> value = positive(name, kMostTokens);
    if (!value) return std::nullopt;
    if (*value != std::floor(*value))
      fail(name, fmt::format("expected a whole number, found '{}'", shown_name(text(name))));
    return static_cast<int64_t>(*value);
  }

  int64_t required(std::string_view name) const {
    const std::optional<int64_t> value = whole(name);
    if (!value) fail(name, "expected a whole number of at least 1, found nothing");
    return *value;
  }

  std::optional<TokenRange> range(std::string_view low_name, std::string_view high_name) const {
    const std::optional<int64_t> low = whole(low_name), high = whole(high_name);
    if (!low && !high) return std::nullopt;
    const TokenRange found{low.value_or(high.value_or(0)), high.value_or(low.value_or(0))};
    if (found.low > found.high)
      fail(low_name, fmt::format("{} is above {}, which is {}", found.low, high_name, found.high));
    return found;
  }

  std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> cells;
    for (const std::string& column : table_.header) {
      if (std::string value = text(column); !value.empty()) cells.emplace(column, std::move(value));
    }
    return cells;
  }

  [[noreturn]] void fail(std::string_view column, const std::string& what) const {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}: {}", table_.place(row_), column, what));
  }

 private:
  const CsvTable& table_;
  const size_t row_;
};

/// What both kinds of tables have.
ServedRow common_row(const CsvTable& table, size_t row, const ServedCells& cells) {
  return {.line = table.lines[row],
          .cells = cells.all(),
          .gpu = cells.name("gpu"),
          .model = cells.name("model"),
          .software = cells.name("software"),
          .version = printable(cells.text("version")),
          .dtype = printable(cells.text("dtype")),
          .gpus = cells.required("gpus"),
          .tp = cells.required("tp"),
          .dp = cells.required("dp"),
          .ep = cells.required("ep")};
}

bool is_set(const ServedCells& cells, std::string_view column) {
  const std::string text = cells.text(column);
  return !text.empty() && text != "0" && text != "none";
}

/// Why a closed loop is not one server that runs the model alone.
std::string why_left_out(const ServedCells& cells) {
  if (is_set(cells, "disaggregated")) return "prefill and decode on servers of their own";
  if (is_set(cells, "multinode")) return "a server on several nodes";
  if (is_set(cells, "drafts")) return "drafts, whose rate of acceptance is not recorded";
  return "";
}

void check_measured(const ServedCells& cells, const ServedRow& row, std::string_view column) {
  if (!row.ttft_s && !row.tpot_s && !row.itl_s && !row.output_tokens_per_s_per_gpu)
    cells.fail(column, "expected a measurement in one of the columns, found none");
  if (row.gpus != row.tp * row.dp && row.left_out.empty())
    cells.fail("gpus", fmt::format("expected tp x dp = {}, found {}", row.tp * row.dp, row.gpus));
}

ServedRow closed_loop(const CsvTable& table, size_t index) {
  const ServedCells cells(table, index);
  ServedRow row = common_row(table, index, cells);
  row.clients = cells.required("clients");
  row.prompt = cells.range("prompt_min", "prompt_max");
  row.output = cells.range("output_min", "output_max");
  row.medians = cells.text("tpot_mean_s").empty() && cells.text("ttft_mean_s").empty();
  row.ttft_s = cells.positive(row.medians ? "ttft_median_s" : "ttft_mean_s", kMostSeconds);
  row.tpot_s = cells.positive(row.medians ? "tpot_median_s" : "tpot_mean_s", kMostSeconds);
  row.ttft_use = printable(cells.text("ttft_use"));
  row.output_tokens_per_s_per_gpu = cells.positive("output_tokens_per_s_per_gpu", kMostTokens);
  row.left_out = why_left_out(cells);
  check_measured(cells, row, "tpot_mean_s");
  return row;
}

ServedRow kept_full(const CsvTable& table, size_t index) {
  const ServedCells cells(table, index);
  ServedRow row = common_row(table, index, cells);
  row.clients = cells.required("max_num_seqs");
  if (const auto mean = cells.positive("output_mean", kMostTokens)) {
    // Of the lengths the mean alone is recorded. Equal ones would let all sequences end, and all
    // prompts start, at once: they are taken to vary by half of the mean.
    const double half = 0.5 * *mean;
    row.output = TokenRange{std::max<int64_t>(1, std::llround(half)),
                            std::max<int64_t>(1, std::llround(3 * half))};
  }
  row.medians = true;
  row.steady = true;
  row.itl_s = cells.positive("itl_median_s", kMostSeconds);
  if (const auto rate = cells.positive("output_tokens_per_s", kMostTokens))
    row.output_tokens_per_s_per_gpu = *rate / static_cast<double>(row.gpus);
  if (const auto watts = cells.positive("power_w", kMostWatts))
    row.power_w = *watts / static_cast<double>(row.gpus);
  if (is_set(cells, "host_bound")) row.left_out = "bound by the host, as the table says";
  check_measured(cells, row, "itl_median_s");
  return row;
}

}  // namespace

bool is_served_table(const CsvTable& table) {
  return has_all(table, {"gpu", "gpus", "model", "software", "dtype", "tp", "dp", "ep", "clients",
                         "prompt_min", "prompt_max", "output_min", "output_max", "ttft_mean_s",
                         "tpot_mean_s"}) ||
         is_kept_full(table);
}

const std::vector<std::string>& served_columns() {
  static const std::vector<std::string> kColumns = {
      "gpu",          "gpus",        "model",      "software",   "version",    "date",
      "dtype",        "cache_dtype", "tp",         "dp",         "ep",         "clients",
      "requests",     "prompt_min",  "prompt_max", "output_min", "output_max", "step_prompt_tokens",
      "max_num_seqs", "ttft_use",    "origin",     "task",       "stack",      "drafts",
      "image",        "snapshot"};
  return kColumns;
}

std::vector<ServedRow> read_served_rows(const CsvTable& table) {
  const bool full = is_kept_full(table);
  std::vector<ServedRow> rows;
  for (size_t row = 0; row < table.rows.size(); ++row)
    rows.push_back(full ? kept_full(table, row) : closed_loop(table, row));
  return rows;
}

double closed_loop_tokens_per_s(int64_t clients, double output, double ttft_s, double tpot_s) {
  return static_cast<double>(clients) * output / (ttft_s + (output - 1) * tpot_s);
}

}  // namespace tilecast
