#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "measurements/layouts.h"
#include "ops/op_def.h"
#include "software/software.h"
#include "tilecast/error.h"

// CSV files written by measure/ (defined in docs/reference/measurements.md), and files with fewer
// of these columns.

namespace tilecast {
namespace {

/// Cells of one row by column name; a missing column is an empty cell.
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
  std::string where() const { return table_.place(row_); }
  size_t index() const { return row_; }

 private:
  const CsvTable& table_;
  size_t row_;
};

/// A dry run of the kit writes simulated times.
bool is_simulated(const CsvTable& table) {
  return std::any_of(table.comments.begin(), table.comments.end(),
                     [](const std::string& line) { return line.starts_with("simulated"); });
}

/// A file of the measurement kit. Its training steps use the fused AdamW, and compute a loss.
bool is_of_kit(const CsvTable& table) {
  return std::any_of(table.comments.begin(), table.comments.end(), [](const std::string& line) {
    return line.starts_with("measured_by: Tilecast measurement kit");
  });
}

/// Why the row has no time; "": it has one.
std::string without_time(const Row& row) {
  const std::string status = row.text("status");
  if (!status.empty() && status != "ok")
    return fmt::format("no time was measured ({})", shown_name(status));
  return row.text("latency_s").empty() ? "latency_s is empty" : "";
}

/// The kit uses cuDNN's names of convolutions. Its 'transpose' moves data, which is Tilecast's
/// 'copy' (Tilecast's 'transpose' is a view).
struct KitOp {
  std::string_view name, op;
};
constexpr KitOp kKitOps[] = {{"conv_forward", "conv2d"},
                             {"conv_backward_data", "conv2d_input_backward"},
                             {"conv_backward_weight", "conv2d_weight_backward"},
                             {"transpose", "copy"}};

/// The operator of a row; "": not forecast.
std::string operator_of(const Row& row) {
  std::string op = row.text("op");
  for (const KitOp& known : kKitOps) {
    if (known.name == op) return std::string(known.op);
  }
  // Attention with one query per sequence is decode attention.
  if (op == "attention" && row.integer("queries", 1) == 1 && row.integer("keys", 1) > 1)
    return "cached_attention";
  return find_op(op) && op_def(*find_op(op)).work != nullptr ? op : "";
}

/// The operator's sizes, from the columns with their names; empty or missing cells mean the
/// default.
SizeList sizes_of(const Row& row, const OpDef& op) {
  SizeList sizes;
  for (const SizeDef& size : op.sizes) {
    std::vector<std::string_view> columns = {size.name};
    columns.insert(columns.end(), size.other_names.begin(), size.other_names.end());
    const auto column = std::find_if(columns.begin(), columns.end(),
                                     [&](std::string_view c) { return !row.text(c).empty(); });
    if (column == columns.end()) continue;
    sizes.push_back(
        {std::string(size.name), size.type == AttributeType::kInteger
                                     ? AttributeValue(row.integer(*column, 0))
                                     : parse_value(size.type, row.text(*column), row.where())});
  }
  return sizes;
}

/// Why the row's kernel is not forecast; "": it is.
std::string not_forecast(const Row& row, const std::string& op) {
  if (op.empty()) return fmt::format("operator '{}' is not forecast", shown_name(row.text("op")));
  for (const std::string_view column : {"dtype", "kv_dtype"}) {
    const std::string dtype = row.text(column);
    const bool needed = column == "dtype";
    if ((needed || !dtype.empty()) && !find_dtype(dtype))
      return fmt::format("{} '{}' is not forecast", column, shown_name(dtype));
  }
  return "";
}

/// The kit's ids take rows in turn (measure/worker/own_kernels.cu, ids_with_reuse): without a list,
/// none repeats before all are used; with more rows in the list than in the table, the last ones
/// are the first ones again, which the list counts as used once.
void set_reuse_of_kit(SizeList& sizes, int64_t table_rows) {
  const auto given = std::find_if(sizes.begin(), sizes.end(),
                                  [](const Attribute& size) { return size.name == "reuse"; });
  if (given == sizes.end()) return sizes.push_back({"reuse", std::vector<int64_t>{0}});
  auto& counts = std::get<std::vector<int64_t>>(given->value);
  int64_t over = std::accumulate(counts.begin(), counts.end(), -table_rows);
  for (int64_t& rows : counts) {
    const int64_t again = std::clamp<int64_t>(over, 0, rows);
    rows -= again;
    over -= again;
  }
}

void read_kernel(const CsvTable& table, const Row& row, const std::string& op,
                 Collector& collector) {
  const bool untimed = collector.keeps_untimed() && !without_time(row).empty();
  RowFacts facts{.gpu = row.text("gpu"), .seconds = untimed ? 0 : row.number("latency_s")};
  if (row.text("protocol") == "single_call") facts.protocol = Protocol::kSingleCall;
  facts.tile = tile_in_name(row.text("kernel_name"));
  if (const std::string software = row.text("software"); !software.empty())
    facts.software = parse_software(software, row.where());
  if (row.text("l2") == "warm") facts.caches = Caches::kWarm;
  SizeList sizes = sizes_of(row, op_def(*find_op(op)));
  // The kit stores images by pixel.
  if (row.text("op").starts_with("conv_") && row.text("channels_last").empty())
    sizes.push_back({"channels_last", 1});
  if (op == "embedding_bag" && is_of_kit(table)) set_reuse_of_kit(sizes, row.integer("k", 1));
  if (row.text("op") == "transpose") facts.label = "transpose";
  // Rows with a warm cache are counted separately.
  if (facts.caches == Caches::kWarm) facts.label_note = " (warm L2)";
  collector.add_kernel({table, row.index()}, op, *find_dtype(row.text("dtype")), sizes,
                       std::move(facts));
}

void read_kernels(const CsvTable& table, Collector& collector) {
  if (is_simulated(table)) return collector.skip(table.where, "the times are simulated");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const Row row(table, r);
    std::string why = collector.keeps_untimed() ? "" : without_time(row);
    const std::string op = operator_of(row);
    if (why.empty()) why = not_forecast(row, op);
    if (why.empty()) {
      read_kernel(table, row, op, collector);
    } else {
      collector.skip(table.where, why);
    }
  }
}

/// Settings of the software that a forecast does not support; "": none.
std::string option_of(const Row& row) {
  if (row.integer("compiled", 0) != 0) return "compiled";
  const std::string attention = row.text("attention");
  return attention == "eager" ? "" : attention;
}

/// "adamw-fused": the optimizer and its implementation. The forecast rejects unknown ones.
void read_training(const Row& row, bool of_kit, ModelMeasurement& m) {
  if (const std::string optimizer = row.text("optimizer"); !optimizer.empty()) {
    const size_t dash = optimizer.find('-');
    m.optimizer = optimizer.substr(0, dash);
    if (dash != std::string::npos) {
      m.optimizer_impl = optimizer.substr(dash + 1);
      if (m.optimizer_impl == "forloop") m.optimizer_impl = "for-loop";
    } else if (of_kit && m.optimizer != "none") {
      m.optimizer_impl = "fused";
    }
  }
  m.checkpointing = row.integer("checkpointing", 0) != 0;
  m.loss = m.mode == "training" && row.integer("loss", of_kit ? 1 : 0) != 0;
}

void read_models(const CsvTable& table, Collector& collector) {
  if (is_simulated(table)) return collector.skip(table.where, "the times are simulated");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const Row row(table, r);
    if (const std::string why = without_time(row); !why.empty()) {
      collector.skip(table.where, why);
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
                              shown_name(m.mode)));
    m.seq = row.integer("seq", 0);
    m.batch = row.integer("batch", 1);
    m.dtype = row.text("dtype");
    read_training(row, is_of_kit(table), m);
    m.option = option_of(row);
    m.measured_s = row.number("latency_s");
    m.source = table.where;
    collector.add_model(std::move(m));
  }
}

void list_rows(const CsvTable& table, Collector& collector, std::string_view why) {
  collector.skip(table.where, fmt::format("{} ({} row{})", why, table.rows.size(),
                                          table.rows.size() == 1 ? "" : "s"));
}

}  // namespace

extern const LayoutDef kOwnKernelLayout = {
    "own kernels", {"gpu", "op", "dtype", "latency_s"}, read_kernels};
extern const LayoutDef kOwnDeviceLayout = {
    "own device", {"gpu", "op", "n", "l2", "latency_s"}, [](const CsvTable& t, Collector& c) {
      list_rows(t, c, "bandwidths and launch times of the device itself are not forecast");
    }};
extern const LayoutDef kOwnModelKernelsLayout = {
    "own model kernels",
    {"gpu", "model", "kernel_name", "calls"},
    [](const CsvTable& t, Collector& c) {
      list_rows(t, c, "profiled kernels of whole models have no sizes to forecast from");
    }};
extern const LayoutDef kOwnPairsLayout = {
    "own pairs", {"gpu", "model", "other_model"}, [](const CsvTable& t, Collector& c) {
      list_rows(t, c, "two processes on one GPU are not forecast");
    }};
extern const LayoutDef kOwnPowerLayout = {
    "own power", {"gpu", "stage", "energy_power_w"}, [](const CsvTable& t, Collector& c) {
      list_rows(t, c, "loads that are held for seconds are compared by research/power");
    }};
extern const LayoutDef kOwnTraceLayout = {
    "own traces", {"gpu", "stage", "trace_bytes"}, [](const CsvTable& t, Collector& c) {
      list_rows(t, c, "steps of which a trace was taken are not compared");
    }};
extern const LayoutDef kOwnModelLayout = {
    "own models", {"gpu", "model", "mode", "dtype", "latency_s"}, read_models};

}  // namespace tilecast
