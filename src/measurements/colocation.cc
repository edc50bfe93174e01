#include "measurements/colocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

bool has_columns(const CsvTable& table, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](std::string_view name) { return table.column(name).has_value(); });
}

/// The cells of a row by the names of their columns.
class Cells {
 public:
  Cells(const CsvTable& table, size_t row) : table_(table), row_(row) {}

  std::string text(std::string_view name) const {
    return std::string(trim(table_.rows[row_][table_.require_column(name)]));
  }

  double speed(std::string_view name) const {
    const double value = table_.number(row_, table_.require_column(name));
    if (!std::isfinite(value) || value < 0)
      fail(fmt::format("{}: expected a number of at least 0, found '{}'", name,
                       shown_name(text(name))));
    return value;
  }

  double positive(std::string_view name) const {
    const double value = speed(name);
    if (value == 0) fail(fmt::format("{}: expected a number above 0, found 0", name));
    return value;
  }

  /// "ResNet-18 16"; without a batch "A3C".
  std::string job(std::string_view model, std::string_view batch) const {
    const std::string name = printable(text(model)), size = printable(text(batch));
    return size.empty() || name.empty() ? name : name + " " + size;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kInput, table_.place(row_) + ": " + what);
  }

 private:
  const CsvTable& table_;
  const size_t row_;
};

PairMeasurement pair_of(const CsvTable& table, size_t row) {
  const Cells cells(table, row);
  PairMeasurement pair{
      .series = table.column("series") ? printable(cells.text("series")) : "",
      .gpu = printable(cells.text("gpu")),
      .job = cells.job("model", "batch"),
      .partner = cells.job("partner_model", "partner_batch"),
      .alone_steps_per_s = cells.positive("alone_steps_s"),
      .line = table.lines[row],
  };
  if (pair.job.empty()) cells.fail("model: expected a name, found nothing");
  if (pair.is_alone()) return pair;
  pair.partner_alone_steps_per_s = cells.positive("partner_alone_steps_s");
  pair.steps_per_s = cells.speed("packed_steps_s");
  pair.partner_steps_per_s = cells.speed("partner_packed_steps_s");
  if ((pair.steps_per_s > 0) != (pair.partner_steps_per_s > 0))
    cells.fail(
        "one of the two speeds is 0: expected both above 0, or both 0 for a pair that did not run");
  return pair;
}

}  // namespace

bool is_pair_table(const CsvTable& table) {
  return has_columns(table,
                     {"gpu", "model", "batch", "alone_steps_s", "partner_model", "partner_batch",
                      "partner_alone_steps_s", "packed_steps_s", "partner_packed_steps_s"});
}

std::vector<PairMeasurement> read_pairs(const CsvTable& table) {
  std::vector<PairMeasurement> pairs;
  for (size_t row = 0; row < table.rows.size(); ++row) pairs.push_back(pair_of(table, row));
  return pairs;
}

bool is_slice_table(const CsvTable& table) {
  return has_columns(table, {"gpu", "slice", "model", "batch", "median_s"});
}

std::vector<SliceMeasurement> read_slices(const CsvTable& table) {
  std::vector<SliceMeasurement> slices;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const Cells cells(table, row);
    slices.push_back({.gpu = printable(cells.text("gpu")),
                      .slice = printable(cells.text("slice")),
                      .job = cells.job("model", "batch"),
                      .step_s = cells.positive("median_s"),
                      .line = table.lines[row]});
  }
  return slices;
}

std::vector<NamedPair> read_named_pairs(const CsvTable& table) {
  const bool relative = has_columns(table, {"relative_speed", "partner_relative_speed"});
  if (!has_columns(table, {"job", "partner"}) ||
      (!relative && !has_columns(table, {"steps_per_s", "partner_steps_per_s"})))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected the columns job, partner, relative_speed, "
                            "partner_relative_speed (or steps_per_s, partner_steps_per_s), "
                            "found {}",
                            table.where, shown_name(join(table.header, ", "))));
  std::vector<NamedPair> pairs;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const Cells cells(table, row);
    pairs.push_back({.job = printable(cells.text("job")),
                     .partner = printable(cells.text("partner")),
                     .relative = relative,
                     .speed = cells.positive(relative ? "relative_speed" : "steps_per_s"),
                     .partner_speed = cells.positive(relative ? "partner_relative_speed"
                                                              : "partner_steps_per_s"),
                     .line = table.lines[row]});
  }
  return pairs;
}

}  // namespace tilecast
