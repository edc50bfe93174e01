#include <fmt/format.h>

#include <algorithm>

#include "measurements/layouts.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

// The CSVs that measure/ writes (docs/data.md defines them), and shorter ones of the same columns.

namespace tilecast {
namespace {

/// Cells of one row by column name; a missing column reads as empty.
class Row {
 public:
  Row(const CsvTable& table, size_t row) : table_(table), row_(row) {}

  std::string text(std::string_view column) const {
    const auto at = table_.column(column);
    return at ? table_.rows[row_][*at] : "";
  }
  int64_t integer(std::string_view column, int64_t otherwise) const {
    const auto at = table_.column(column);
    return !at || table_.rows[row_][*at].empty() ? otherwise : table_.integer(row_, *at);
  }
  double number(std::string_view column) const {
    return table_.number(row_, table_.require_column(column));
  }
  std::string where() const { return fmt::format("{}: row {}", table_.where, row_ + 1); }
  bool has_time() const { return text("status").empty() || text("status") == "ok"; }

 private:
  const CsvTable& table_;
  size_t row_;
};

/// The dry run of the kit writes made-up times.
bool is_simulated(const CsvTable& table) {
  return std::any_of(table.comments.begin(), table.comments.end(),
                     [](const std::string& line) { return line.starts_with("simulated"); });
}

/// Empty where the row's time is what a forecast means.
std::string not_forecast(const Row& row) {
  if (!row.has_time()) return fmt::format("no time was measured ({})", row.text("status"));
  const std::string op = row.text("op");
  if (!find_op(op) || op_def(*find_op(op)).work == nullptr)
    return fmt::format("operator '{}' is not forecast", op);
  if (row.text("l2") == "warm") return "measured with a warm L2; a forecast means a cold one";
  return "";
}

void read_kernels(const CsvTable& table, Collector& collector) {
  if (is_simulated(table)) return collector.skip(table.where, "the times are simulated");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const Row row(table, r);
    if (const std::string why = not_forecast(row); !why.empty()) {
      collector.skip(table.where, why);
      continue;
    }
    RowFacts facts{.gpu = row.text("gpu"), .seconds = row.number("latency_s")};
    if (row.text("protocol") == "single_call") facts.protocol = Protocol::kSingleCall;
    facts.tile = tile_in_name(row.text("kernel_name"));
    KernelShape shape{row.integer("batch", 1), row.integer("m", row.integer("queries", 1)),
                      row.integer("n", row.integer("keys", 1)),
                      row.integer("k", row.integer("head_size", 1))};
    shape.heads = row.integer("heads", shape.heads);
    shape.kv_heads = row.integer("kv_heads", shape.kv_heads);
    shape.window = row.integer("window", 0);
    shape.causal = row.integer("causal", 0) != 0;
    collector.add_kernel(table, row.text("op"), parse_dtype(row.text("dtype"), row.where()), shape,
                         std::move(facts));
  }
}

/// What of the software's settings a forecast does not know; empty where it knows all.
std::string option_of(const Row& row) {
  if (row.integer("compiled", 0) != 0) return "compiled";
  if (row.integer("checkpointing", 0) != 0) return "checkpointing";
  const std::string attention = row.text("attention");
  return attention == "eager" ? "" : attention;
}

void read_models(const CsvTable& table, Collector& collector) {
  if (is_simulated(table)) return collector.skip(table.where, "the times are simulated");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const Row row(table, r);
    if (!row.has_time()) {
      collector.skip(table.where, fmt::format("no time was measured ({})", row.text("status")));
      continue;
    }
    ModelMeasurement m;
    m.gpu = row.text("gpu");
    m.model = row.text("model");
    m.config_text = row.text("config");
    m.mode = row.text("mode");
    if (m.mode != "inference" && m.mode != "training")
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: 'mode': expected inference or training, found '{}'", row.where(),
                              m.mode));
    m.seq = row.integer("seq", 1);
    m.batch = row.integer("batch", 1);
    m.dtype = row.text("dtype");
    if (const std::string optimizer = row.text("optimizer"); !optimizer.empty())
      m.optimizer = optimizer;
    m.option = option_of(row);
    m.measured_s = row.number("latency_s");
    m.source = table.where;
    collector.add_model(std::move(m));
  }
}

}  // namespace

const LayoutDef kOwnKernelLayout = {
    "own kernels", {"gpu", "op", "dtype", "latency_s"}, read_kernels};
const LayoutDef kOwnModelLayout = {
    "own models", {"gpu", "model", "mode", "dtype", "latency_s"}, read_models};

}  // namespace tilecast
